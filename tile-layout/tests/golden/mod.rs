//! The golden cases, read from `tests/golden/*.jsonl` at the top of the workspace: one function per operation,
//! and a count that shows that none is left out.

mod layouts;
mod movement;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tile_layout::{IntTuple, Layout};

/// The answer of the crate to one case: a reason where it is wrong.
type Verdict = Result<(), String>;

/// All cases of a file.
fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Run `check` on every case and report all that fail, by operation.
fn run(file: &str, expected: usize, check: impl Fn(&str, &Value) -> Verdict) {
    let cases = cases(file);
    assert!(cases.len() >= expected, "{file} has lost cases");
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in &cases {
        let operation = case["op"].as_str().unwrap();
        if let Err(reason) = check(operation, case) {
            let line = format!("{} {}: {reason}", case["id"].as_str().unwrap(), case["args"]);
            failures.entry(operation.to_owned()).or_default().push(line);
        }
    }
    let shown: Vec<String> = failures
        .iter()
        .map(|(operation, lines)| {
            let first: Vec<&str> = lines.iter().take(8).map(String::as_str).collect();
            format!("{operation}: {} failed\n  {}", lines.len(), first.join("\n  "))
        })
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("`{value}` is no integer"))
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(integer).collect()
}

fn tuple(value: &Value) -> IntTuple {
    match value {
        Value::Array(parts) => IntTuple::tuple(&parts.iter().map(tuple).collect::<Vec<_>>()),
        leaf => IntTuple::leaf(integer(leaf)),
    }
}

fn layout(value: &Value) -> Layout {
    Layout::new(tuple(&value["shape"]), tuple(&value["stride"])).unwrap()
}

fn is_error(case: &Value) -> bool {
    case["expect"].get("error").is_some()
}

fn is_optional(case: &Value) -> bool {
    case["optional"] == true
}

/// Fail unless the two are equal.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Verdict {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}
