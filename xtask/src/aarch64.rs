//! `cargo xtask aarch64`: the tests of native code once more with code for AArch64, which QEMU runs.
//!
//! `cargo xtask test` runs those of them that have every op, every kind of product, random kernels and the functions' bounds;
//! the command alone runs all.

use crate::setup;
use crate::steps::{cargo, run, show_closing_lines};
use std::process::Command;

/// What the tests ask for the architecture whose code they run.
const VARIABLE: (&str, &str) = ("TILE_TEST_ARCHITECTURE", "aarch64");

/// Modules of `tile-codegen/tests/targets` whose tests run native code.
const MODULES: [&str; 22] = [
    "accuracy::",
    "atomics::",
    "budgets::",
    "contract::",
    "control::",
    "cpu::",
    "factors_of_products::",
    "golden::",
    "leaf::",
    "lines::",
    "messages::",
    "movement::",
    "prefetch::",
    "products::",
    "random::",
    "rows::",
    "scatters::",
    "schedules::",
    "scratch::",
    "sharing::",
    "strided::",
    "views::",
];

/// Those that a change must pass to land.
const ESSENTIAL: [&str; 6] = [
    "accuracy::",
    "budgets::",
    "cpu::",
    "golden::",
    "products::of_every_kind_of_contraction",
    "random::random_kernels_agree_exactly",
];

/// Runs all tests of native code.
pub(crate) fn run_all() -> Result<(), String> {
    setup::llvm()?;
    setup::emulator()?;
    let shown =
        run("native code for AArch64, under QEMU", &mut tests(&["--package", "tile-codegen"], &MODULES))?;
    show_closing_lines(&shown);
    Ok(())
}

/// The essential tests of packages that are built with these features, as a command.
pub(crate) fn essential(features: &str) -> Result<Command, String> {
    setup::emulator()?;
    Ok(tests(&["--workspace", "--features", features], &ESSENTIAL))
}

fn tests(selection: &[&str], filters: &[&str]) -> Command {
    let mut command = cargo(&["test"]);
    command.args(selection).args(["--test", "main", "--"]).args(filters).env(VARIABLE.0, VARIABLE.1);
    command
}
