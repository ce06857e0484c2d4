//! The runtime, as rustc checks it for systems that this machine isn't: what it asks of one that another lacks is an error.
//! The rest of the library asks nothing of systems.
//! That programs for Windows run, [`crate::windows`] shows.

use crate::steps::{cargo, if_had, run};
use crate::test::AS_TESTS_ASK;
use crate::{setup, windows};

/// Those that differ most from Linux, by Rust's names.
const SYSTEMS: [&str; 2] = [windows::TARGET, "aarch64-apple-darwin"];

/// Checks for each whose standard library can be had.
pub(crate) fn check() -> Result<(), String> {
    for system in SYSTEMS {
        if if_had(&format!("Rust for {system}"), setup::rust_target(system)).is_some() {
            let mut check = cargo(&["check", "--package", "tile-runtime", "--target", system]);
            run(&format!("the runtime for {system}"), check.args(AS_TESTS_ASK))?;
        }
    }
    Ok(())
}
