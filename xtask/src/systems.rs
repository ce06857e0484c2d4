//! The runtime, as rustc checks it for systems that this machine isn't: what it asks of one that another lacks is an error.
//! The rest of the library asks nothing of systems.
//! That programs for Windows run, [`crate::windows`] shows.

use crate::steps::{MACROS_AS_THEY_ARE, cargo, if_had, run};
use crate::{setup, windows};

/// Those that differ most from Linux, by Rust's names.
const SYSTEMS: [&str; 2] = [windows::TARGET, "aarch64-apple-darwin"];

/// Checks for those whose standard library can be had, at once: they share the macros.
pub(crate) fn check() -> Result<(), String> {
    let is_had = |system: &&str| if_had(&format!("Rust for {system}"), setup::rust_target(system)).is_some();
    let systems: Vec<&str> = SYSTEMS.into_iter().filter(is_had).collect();
    if systems.is_empty() {
        return Ok(());
    }
    let (variable, level) = MACROS_AS_THEY_ARE;
    let mut check = cargo(&["check", "--package", "tile-runtime"]);
    check.env(variable, level).args(systems.iter().flat_map(|system| ["--target", system]));
    run(&format!("the runtime for {}", systems.join(", ")), &mut check).map(drop)
}
