//! `cargo xtask load`: what takes too long for every run of the tests.

use crate::setup;
use crate::steps::{cargo, run as run_step};

/// How often the test launches.
const LAUNCHES: &str = "1000000";

/// Launches a million times and shows how large the process was before and after.
pub(crate) fn run() -> Result<(), String> {
    setup::llvm()?;
    let test =
        ["test", "--package", "tile", "--features", "jit", "--test", "allocations", "--", "--nocapture"];
    let output = run_step("a million launches", cargo(&test).env("TILE_TEST_LAUNCHES", LAUNCHES))?;
    output.lines().filter(|line| line.contains("launches:")).for_each(|line| println!("{line}"));
    Ok(())
}
