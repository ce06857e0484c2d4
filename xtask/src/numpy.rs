//! NumPy beside our tensors, in one process: `tile-runtime/tests/numpy/check.py`.

use crate::setup;
use crate::steps::{cargo, if_had, root, run, target};
use crate::test::FEATURES;
use std::path::PathBuf;
use std::process::Command;

/// The release of NumPy.
const VERSION: &str = "2.3.5";

/// The folder that Python finds NumPy in, installed if it isn't; `None`, after saying why, where it can't be had.
fn installed() -> Result<Option<PathBuf>, String> {
    let folder = target().join("tools").join("numpy");
    if folder.join("numpy").exists() {
        return Ok(Some(folder));
    }
    setup::pip()?;
    let (to, package) = (folder.display().to_string(), format!("numpy=={VERSION}"));
    let install = ["-m", "pip", "install", "--quiet", "--target", &to, &package];
    let installed = run("installation of NumPy", Command::new("python3").args(install));
    Ok(if_had("NumPy", installed).map(|_| folder))
}

/// Builds the library that the script loads, and runs the script.
pub(crate) fn check() -> Result<(), String> {
    let Some(numpy) = installed()? else { return Ok(()) };
    let build = ["build", "--workspace", "--features", FEATURES, "--example", "exchange"];
    run("tensors for NumPy", &mut cargo(&build))?;
    let script = root().join("tile-runtime").join("tests").join("numpy").join("check.py");
    let library = target().join("debug").join("examples").join("libexchange.so");
    let mut python = Command::new("python3");
    let output =
        run("tensors and NumPy", python.env("PYTHONPATH", &numpy).arg("-B").arg(script).arg(library))?;
    let says = output.lines().find(|line| line.starts_with("NumPy")).unwrap_or_default();
    println!("    {says}");
    Ok(())
}
