//! `cargo xtask bench …`: what is measured, one file per subject.

pub(crate) mod choices;
pub(crate) mod compile;
pub(crate) mod cpu;
pub(crate) mod h200;
pub(crate) mod launch;
pub(crate) mod layout;

use crate::steps::{cargo, output, run, target};
use std::process::Command;

/// Builds an example of a package with optimisation and features, runs it and prints what it measured.
fn run_example(package: &str, example: &str, features: &[&str], arguments: &[String]) -> Result<(), String> {
    let features = features.join(",");
    let build =
        ["build", "--release", "--package", package, "--example", example, "--features", features.as_str()];
    run("building the benchmark", &mut cargo(&build))?;
    let program = target().join("release").join("examples").join(example);
    let (text, succeeded) = output(Command::new(program).args(arguments))?;
    print!("{text}");
    if succeeded { Ok(()) } else { Err("the benchmark failed".to_owned()) }
}
