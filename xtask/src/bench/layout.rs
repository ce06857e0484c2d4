//! `cargo xtask bench layout`: single operations of the layout library, beside one heap allocation.

/// Measures and prints a table.
pub(crate) fn run() -> Result<(), String> {
    super::run_example("tile-layout", "bench_layout", &[], &[])
}
