//! Random programs for machines that have neither these tests nor an evaluator: with [`FILE`] in the environment, every
//! program, with what it is given and what it must leave, becomes a line of that file instead of being run here. `replay`, an
//! example of the runtime, launches them on a device.

use crate::strided::Laid;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use tile_ir::Array;

/// The environment variable that names the file.
const FILE: &str = "TILE_FUZZ_KEEP";

static WRITING: Mutex<()> = Mutex::new(());

/// Keeps a program whose tensors lie so, followed by its scalars; whether a file was asked for.
pub(super) fn keep(source: &str, laid: &[Laid], scalars: &[Array], expected: &[Array]) -> bool {
    let Some(path) = std::env::var_os(FILE) else { return false };
    let path = checked(Path::new(&path));
    let tensors = laid.iter().zip(expected).map(|(laid, expected)| tensor(laid, expected));
    let scalars = scalars.iter().map(scalar);
    let arguments: Vec<Value> = tensors.chain(scalars).collect();
    let line = json!({"source": source, "arguments": arguments});
    let _one = WRITING.lock().expect("nothing panics while it is held");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    true
}

/// A path that means the same file to who named it: a test runs in the folder of its package, wherever cargo was called.
fn checked(path: &Path) -> &Path {
    let shown = path.display();
    assert!(
        path.is_absolute(),
        "{FILE} is `{shown}`, which would be a file in the package's folder; write `{FILE}=$PWD/{shown}`"
    );
    path
}

#[test]
#[should_panic(
    expected = "TILE_FUZZ_KEEP is `kept.jsonl`, which would be a file in the package's folder; write \
                           `TILE_FUZZ_KEEP=$PWD/kept.jsonl`"
)]
fn a_file_of_random_programs_is_named_by_a_whole_path() {
    checked(Path::new("kept.jsonl"));
}

fn tensor(laid: &Laid, expected: &Array) -> Value {
    json!({
        "dtype": expected.dtype().name(),
        "extents": expected.shape(),
        "strides": laid.strides_or_dense(),
        "first": [laid.first()],
        "memory": hex(&laid.memory.to_bytes()),
        "expected": hex(&laid.holding(expected).to_bytes()),
    })
}

fn scalar(value: &Array) -> Value {
    json!({"dtype": value.dtype().name(), "memory": hex(&value.to_bytes())})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
