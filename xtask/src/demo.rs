//! `cargo xtask demo`: a real job on real data.

use crate::setup;
use crate::steps::{self, cargo};

/// Builds and runs `examples/digits`.
pub(crate) fn run() -> Result<(), String> {
    setup::llvm()?;
    let build = &mut cargo(&["build", "--release", "--package", "digits"]);
    steps::run("building the demo, its kernels for five targets", build)?;
    match cargo(&["run", "--release", "--quiet", "--package", "digits"]).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the demo failed: {status}")),
        Err(error) => Err(format!("the demo can't be run: {error}")),
    }
}
