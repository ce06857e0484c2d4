//! `cargo xtask bench cpu`: the CPU target beside the best libraries for the same work. They come with a package of their
//! own, which is built here and by nobody else.

use crate::setup;
use crate::steps::{cargo, root, run as run_step, target};
use std::path::Path;
use std::process::Command;

/// Where the package is, below the workspace's root.
const PACKAGE: &str = "benches/cpu";

/// The program that it builds.
const PROGRAM: &str = "bench-cpu";

/// Builds the package and runs it with these arguments; its results go to the target folder unless they say otherwise.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    setup::llvm()?;
    let manifest = root().join(PACKAGE).join("Cargo.toml");
    // Not `--locked`: the lock file names what this workspace depends on, too, which changes.
    let mut build = cargo(&["build", "--release", "--target-dir"]);
    build.arg(target()).arg("--manifest-path").arg(manifest);
    run_step("building the benchmark with the libraries beside which it measures", &mut build)?;
    let results = target().join("bench");
    let mut program = Command::new(target().join("release").join(PROGRAM));
    program.args(defaults(&results)).args(arguments);
    let status = program.status().map_err(|error| format!("{PROGRAM}: {error}"))?;
    if status.success() { Ok(()) } else { Err("the benchmark failed".to_owned()) }
}

/// The options that the program gets first; of an option that is given twice it takes the last.
fn defaults(results: &Path) -> [String; 4] {
    let file = |name: &str| results.join(name).display().to_string();
    ["--csv".to_owned(), file("cpu.csv"), "--png".to_owned(), file("cpu.png")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn results_go_to_the_target_folder() {
        let defaults = defaults(Path::new("target/bench"));
        assert_eq!(defaults, ["--csv", "target/bench/cpu.csv", "--png", "target/bench/cpu.png"]);
    }

    /// A package that is no member is found by its name here alone.
    #[test]
    fn the_package_is_where_it_is_looked_for() {
        let manifest = fs::read_to_string(root().join(PACKAGE).join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{PROGRAM}\"")), "{manifest}");
        let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(workspace.contains(&format!("exclude = [\"{PACKAGE}\"]")));
    }
}
