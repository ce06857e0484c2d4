//! What the golden cases must cover, by the op tables: every op on every format that it accepts. What has no golden
//! case is listed with the reason and the test that checks it.

use std::collections::BTreeSet;
use tile_ir::Instance;
use tile_ir::dtype::{Class, DType};
use tile_ir::ops::infer::mma_accumulators;
use tile_ir::ops::{Domain, Leaf, Movement, Op, ReduceOp, ScanMode, ScatterMode};
use tile_ir::round::Rounding;

/// Ops, each with the attributes that decide about numbers, and formats of their operands.
pub(crate) type Covered = BTreeSet<(String, DType)>;

/// An op that has no golden case.
struct Elsewhere {
    op: &'static str,
    why: &'static str,
    /// The file of the test that checks it, and the test.
    test: (&'static str, &'static str),
}

const ATOMICS: &str = include_str!("../atomics.rs");
const CONTROL: &str = include_str!("../control.rs");
const GRIDS: &str = include_str!("../../../../tests/kernels/grids.rs");
const PREFETCH: &str = include_str!("../prefetch.rs");
const SCALED: &str = include_str!("../scaled.rs");
const SCHEDULES: &str = include_str!("../schedules.rs");
const SIMT: &str = include_str!("../simt.rs");
const LEAF: &str = include_str!("../leaf.rs");
const VIEWS: &str = include_str!("../views.rs");
const MESSAGES: &str = include_str!("../messages.rs");

const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere { op: "extent", why: "a number of the launch", test: (SIMT, "loops_branches_and_movement") },
    Elsewhere { op: "block_id", why: "a number of the launch", test: (GRIDS, "blocks_know_their_place") },
    Elsewhere { op: "block_count", why: "a number of the launch", test: (GRIDS, "blocks_know_their_place") },
    Elsewhere {
        op: "view",
        why: "memory, not numbers",
        test: (VIEWS, "tensors_are_read_through_every_movement"),
    },
    Elsewhere {
        op: "block_index",
        why: "a number of the launch",
        test: (VIEWS, "tensors_are_read_through_every_movement"),
    },
    Elsewhere {
        op: "load",
        why: "the masked load's numbers",
        test: (VIEWS, "loads_and_stores_without_masks"),
    },
    Elsewhere {
        op: "store",
        why: "the masked store's numbers",
        test: (VIEWS, "loads_and_stores_without_masks"),
    },
    Elsewhere {
        op: "convert_layout",
        why: "no numbers of its own",
        test: (SIMT, "tiles_change_threads_where_their_layouts_differ"),
    },
    Elsewhere {
        op: "mma_scaled",
        why: "schedules have it in place of other ops",
        test: (SCALED, "instructions_scale_blocks"),
    },
    Elsewhere { op: "lookup", why: "the table's numbers", test: (LEAF, "tables_are_looked_up") },
    Elsewhere { op: "gather_load", why: "memory, not numbers", test: (VIEWS, "gathers_of_every_integer") },
    Elsewhere { op: "for", why: "no numbers of its own", test: (SIMT, "loops_branches_and_movement") },
    Elsewhere { op: "if", why: "no numbers of its own", test: (SIMT, "loops_branches_and_movement") },
    Elsewhere {
        op: "while",
        why: "no numbers of its own",
        test: (CONTROL, "a_tile_decides_how_long_a_loop_runs"),
    },
    Elsewhere {
        op: "tiles",
        why: "no numbers of its own",
        test: (SCHEDULES, "blocks_take_the_tiles_that_the_formula_gives_them"),
    },
    Elsewhere {
        op: "prefetch",
        why: "no numbers",
        test: (PREFETCH, "every_line_of_what_exists_is_asked_for_and_no_other"),
    },
    Elsewhere {
        op: "atomic",
        why: "what it gives depends on the order of blocks",
        test: (ATOMICS, "every_operation_agrees_with_the_evaluator"),
    },
    Elsewhere {
        op: "print",
        why: "no numbers",
        test: (MESSAGES, "every_target_says_what_the_evaluator_says"),
    },
    Elsewhere {
        op: "assert",
        why: "no numbers",
        test: (MESSAGES, "every_target_says_what_the_evaluator_says"),
    },
];

/// The ops of a kernel and the formats that they work on.
pub(crate) fn covered_by(instance: &Instance) -> Covered {
    let named = instance.walk().into_iter().filter_map(|op| {
        let data = instance.op(op);
        let of = match data.op {
            Op::Histogram(_) | Op::StoreMasked | Op::Mma => data.operands.last(),
            _ => data.results.first().or(data.operands.first()),
        };
        let dtype = instance.ty(*of?).elem().known()?;
        Some((label(&data.op), dtype))
    });
    named.collect()
}

/// The op with the attributes that decide about numbers.
pub(crate) fn label(op: &Op) -> String {
    match op {
        Op::Reduce { op, .. } => format!("reduce {}", op.name()),
        Op::Scan { op, mode, .. } => scan_label(*op, *mode),
        Op::Sort { descending: true, .. } => String::from("sort descending"),
        op => op.name().to_owned(),
    }
}

fn scan_label(op: ReduceOp, mode: ScanMode) -> String {
    format!("scan {}{}", op.name(), mode.suffix())
}

/// The formats that NumPy has. Of powers of two `tile_ir::round` has the table, and `edges` and `movement` compare every op
/// with the evaluator.
fn formats() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_element() && dtype.class() != Class::Scale)
}

/// What must have a golden case.
pub(crate) fn required() -> Covered {
    let mut required = Covered::new();
    for dtype in formats() {
        let rows = leaf_rows().into_iter().chain(structural_rows());
        let accepted = rows.filter(|(_, domain)| domain.accepts(dtype));
        required.extend(accepted.map(|(name, _)| (name, dtype)));
        required.extend(conversions(dtype).into_iter().map(|name| (name, dtype)));
        for &right in DType::ALL {
            let totals = mma_accumulators(dtype, right).iter();
            required.extend(totals.map(|total| (format!("mma {right} {total}"), dtype)));
        }
    }
    required
}

fn leaf_rows() -> Vec<(String, Domain)> {
    let rows = Leaf::all().map(|leaf| (leaf.name(), leaf.domain())).chain([("mul_add", Domain::Float)]);
    rows.map(|(name, domain)| (name.to_owned(), domain)).collect()
}

/// Kinds of [`Op`] that stand in the other lists: as rows of their tables, with their formats, or elsewhere.
const LISTED: &[&str] = &[
    "unary",
    "binary",
    "compare",
    "classify",
    "movement",
    "reduce",
    "scan",
    "cast",
    "cast_with",
    "saturating_cast",
    "bitcast",
    "mul_add",
    "mma",
    "partition",
    "yield",
];

fn structural_rows() -> Vec<(String, Domain)> {
    let elsewhere = |name: &str| ELSEWHERE.iter().any(|row| row.op == name);
    let domain = |name: &str| match name {
        "iota" | "sort" => Domain::Number,
        "histogram" => Domain::Int,
        _ => Domain::Any,
    };
    let kinds =
        Op::KINDS.iter().map(|kind| kind.name).filter(|name| !LISTED.contains(name) && !elsewhere(name));
    let mut rows: Vec<(String, Domain)> = kinds.map(|name| (name.to_owned(), domain(name))).collect();
    rows.extend(Movement::KINDS.iter().map(|kind| (kind.name.to_owned(), Domain::Any)));
    let added = Op::Scatter { axis: 0, mode: ScatterMode::Add };
    rows.extend([(added.name().to_owned(), Domain::Number), ("sort descending".to_owned(), Domain::Number)]);
    for op in ReduceOp::ALL {
        rows.push((format!("reduce {}", op.name()), op.domain()));
        let modes = ScanMode::ALL.iter().filter(|_| op.scan_method().is_some());
        rows.extend(modes.map(|&mode| (scan_label(*op, mode), op.domain())));
    }
    rows
}

/// What a format is converted to.
fn conversions(from: DType) -> Vec<String> {
    let mut found = Vec::new();
    for to in formats() {
        found.push(format!("cast to {to}"));
        if Domain::Number.accepts(from) && Domain::Number.accepts(to) {
            let rounded = Rounding::ALL.iter().filter(|_| from.is_float());
            found.extend(rounded.map(|rounding| format!("cast_with {} to {to}", rounding.name())));
            if from.is_float() && to.is_float() {
                found.push(format!("saturating_cast to {to}"));
            }
            if from.bits() == to.bits() {
                found.push(format!("bitcast to {to}"));
            }
        }
    }
    found
}

#[test]
fn what_has_no_golden_case_has_a_test() {
    for Elsewhere { op, why, test: (file, test) } in ELSEWHERE {
        assert!(Op::KINDS.iter().any(|kind| kind.name == *op) && !why.is_empty(), "{op}");
        assert!(file.contains(&format!("#[test]\nfn {test}(")), "{test}, which checks `{op}`, is gone");
    }
}
