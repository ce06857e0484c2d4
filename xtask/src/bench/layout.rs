//! `cargo xtask bench layout`: single operations of the layout library, beside one heap allocation.

use crate::steps::{cargo, output, run as run_step, target};
use std::process::Command;

/// Measures and prints a table.
pub(crate) fn run() -> Result<(), String> {
    let build = ["build", "--release", "--package", "tile-layout", "--example", "bench_layout"];
    run_step("building the benchmark", &mut cargo(&build))?;
    let (text, succeeded) = output(&mut Command::new(target().join("release/examples/bench_layout")))?;
    print!("{text}");
    if succeeded { Ok(()) } else { Err("the benchmark failed".to_owned()) }
}
