//! What random programs have reached: which ops on which formats ran on which targets. With [`REPORT`] in the environment
//! a run adds what it reached to that file.

use crate::golden::coverage::{label, required};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use tile_ir::ops::{Leaf, Op};
use tile_ir::{DType, Instance, OpId};

/// The environment variable that names the file.
const REPORT: &str = "TILE_FUZZ_REACHED";

/// Stands for a target in rows of what is to be reached.
const NOWHERE: &str = "nowhere";

/// How many programs had an op on a format on a target; the op with the attributes that decide about numbers.
type Reached = BTreeMap<(String, String, String), u64>;

static REACHED: LazyLock<Mutex<Reached>> = LazyLock::new(|| Mutex::new(earlier()));

/// Where the table is kept, if it is.
fn report() -> Option<PathBuf> {
    std::env::var_os(REPORT).map(PathBuf::from)
}

/// What earlier runs reached.
fn earlier() -> Reached {
    let text = report().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let (op, dtype, target) = (cells.next()?, cells.next()?, cells.next()?);
        Some(((op, dtype, target), cells.next()?.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

/// Notes that a target ran an instance, and left what it should.
pub(super) fn note(instance: &Instance, target: &str) {
    let Some(path) = report() else { return };
    let mut pieces: Vec<(String, DType)> =
        instance.walk().into_iter().filter_map(|op| piece(instance, op)).collect();
    pieces.sort();
    pieces.dedup();
    let mut reached = REACHED.lock().expect("nothing panics while it is held");
    for (op, dtype) in pieces {
        *reached.entry((op, dtype.to_string(), target.to_owned())).or_default() += 1;
    }
    // What the op tables have and no program had is in the file too. Functions that are only near their values are not
    // compared bit by bit.
    let is_near = |name: &str| Leaf::from_name(name).is_some_and(|leaf| leaf.ulps().is_some());
    for (op, dtype) in required().into_iter().filter(|(op, _)| !is_near(op)) {
        reached.entry((op, dtype.to_string(), NOWHERE.to_owned())).or_default();
    }
    save(&reached, &path);
}

/// Notes that a program was too large for a target.
pub(super) fn note_refused(target: &str) {
    let Some(path) = report() else { return };
    let mut reached = REACHED.lock().expect("nothing panics while it is held");
    *reached.entry(("refused".to_owned(), "program".to_owned(), target.to_owned())).or_default() += 1;
    save(&reached, &path);
}

fn save(reached: &Reached, path: &Path) {
    let mut text = String::new();
    for ((op, dtype, target), count) in reached {
        let _ = writeln!(text, "{op}\t{dtype}\t{target}\t{count}");
    }
    std::fs::write(path, text).expect("the report's folder is there");
}

/// An op by its name in [`required`], and the format of what it computes with.
fn piece(instance: &Instance, op: OpId) -> Option<(String, DType)> {
    let data = instance.op(op);
    let operand = |i: usize| instance.ty(*data.operands.get(i)?).elem().known();
    let result = || instance.ty(*data.results.first()?).elem().known();
    let (name, dtype) = match &data.op {
        Op::Cast(_) => (format!("cast to {}", result()?), operand(0)),
        Op::CastWith(_, rounding) => (format!("cast_with {} to {}", rounding.name(), result()?), operand(0)),
        Op::SaturatingCast(_) => (format!("saturating_cast to {}", result()?), operand(0)),
        Op::Bitcast(_) => (format!("bitcast to {}", result()?), operand(0)),
        Op::Mma => (format!("mma {} {}", operand(1)?, result()?), operand(0)),
        Op::View(movement) => (format!("view {}", movement.kind()), operand(0)),
        Op::Atomic(atomic) => (format!("atomic {}", atomic.kind.name()), operand(0)),
        op @ (Op::Compare(_)
        | Op::Classify(_)
        | Op::Lookup { .. }
        | Op::Histogram(_)
        | Op::StoreMasked
        | Op::Store) => (label(op), operand(0)),
        Op::Select => ("select".to_owned(), operand(1)),
        op => (label(op), result().or(operand(0))),
    };
    Some((name, dtype?))
}
