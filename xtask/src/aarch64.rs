//! `cargo xtask aarch64`: the tests of native code once more with code for AArch64, which QEMU runs.
//!
//! `cargo xtask test` runs those of them that have every op, every kind of product, random kernels and the functions' bounds;
//! the command alone runs all.

use crate::setup;
use crate::steps::{cargo, run, show_closing_lines};
use std::process::Command;

/// What the tests ask for the architecture whose code they run.
const VARIABLE: (&str, &str) = ("TILE_TEST_ARCHITECTURE", "aarch64");

/// Modules of `tile-codegen/tests/targets` that run no native code: they show the same of every architecture.
const OF_GPUS: [&str; 24] = [
    "amd::",
    "brought_factors::",
    "closeness::",
    "conflicts::",
    "copies::",
    "derivatives::",
    "eight_bits::",
    "exits::",
    "faults::",
    "float8::",
    "gathered_factors::",
    "gpu::",
    "hints::",
    "instructions::",
    "metadata::",
    "pipelines::",
    "remarks::",
    "scaled::",
    "sharing_blocks::",
    "simt::",
    "sorts::",
    "stacks::",
    "tensor_memory::",
    "whole_loops::",
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
    let mut all = tests(&["--package", "tile-codegen"]);
    all.args(OF_GPUS.iter().flat_map(|module| ["--skip", module]));
    show_closing_lines(&run("native code for AArch64, under QEMU", &mut all)?);
    Ok(())
}

/// The essential tests of packages that are built with these features, as a command.
pub(crate) fn essential(features: &str) -> Result<Command, String> {
    setup::emulator()?;
    let mut some = tests(&["--workspace", "--features", features]);
    some.args(ESSENTIAL);
    Ok(some)
}

fn tests(selection: &[&str]) -> Command {
    let mut command = cargo(&["test"]);
    command.args(selection).args(["--test", "main", "--"]).env(VARIABLE.0, VARIABLE.1);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::root;
    use crate::steps::tests::assert_is_a_test;

    /// How tests run native code.
    const RUNS: [&str; 5] = ["run_native", "run_everywhere", "run_here", "Native::", "support::{agree"];

    /// Native code of a module that is left out would never be run for AArch64, and nobody would see it.
    #[test]
    fn no_module_that_runs_native_code_is_left_out() {
        let folder = root().join("tile-codegen/tests/targets");
        for module in OF_GPUS {
            let path = folder.join(module.replace("::", ".rs"));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            assert!(text.contains("#[test]"), "{module} has no tests");
            let runs: Vec<&str> = RUNS.into_iter().filter(|way| text.contains(way)).collect();
            assert!(runs.is_empty(), "{module}: {runs:?}");
        }
    }

    /// A name that no test has would leave a change unchecked.
    #[test]
    fn what_a_change_must_pass_is_there() {
        let folder = root().join("tile-codegen/tests/targets");
        ESSENTIAL.iter().for_each(|test| assert_is_a_test(&folder, test, "mod.rs"));
    }
}
