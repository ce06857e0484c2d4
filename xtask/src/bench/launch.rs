//! `cargo xtask bench launch`: what a launch costs the thread that makes it.

use crate::setup;

/// Measures and prints a table.
pub(crate) fn run() -> Result<(), String> {
    setup::llvm()?;
    super::run_example("tile", "bench_launch", &["jit"], &[])
}
