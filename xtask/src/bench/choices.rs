//! `cargo xtask bench choices`: what the cost model chooses, and how long every instance takes.

use crate::setup;

/// Measures and prints the instances of several kernels, in the model's order.
pub(crate) fn run() -> Result<(), String> {
    setup::llvm()?;
    super::run_example("tile", "bench_choices", &["jit"], &[])
}
