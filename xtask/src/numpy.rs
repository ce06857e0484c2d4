//! NumPy beside our tensors, in one process: `tile-runtime/tests/numpy/check.py`.

use crate::setup;
use crate::steps::{cargo, if_had, root, run, target};
use crate::test::FEATURES;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release of NumPy.
const VERSION: &str = "2.3.5";

/// The folder that Python finds NumPy in, installed if it isn't; `None`, after saying why, where it can't be had.
fn installed() -> Option<PathBuf> {
    let tools = target().join("tools");
    let folder = tools.join(format!("numpy-{VERSION}"));
    if folder.exists() {
        return Some(folder);
    }
    if_had("NumPy", install(&tools.join("numpy.partial"), &folder)).map(|()| folder)
}

/// Installs NumPy in a folder, which has its name only when it is whole.
fn install(partial: &Path, folder: &Path) -> Result<(), String> {
    setup::pip()?;
    // What an installation that was interrupted has left.
    let _ = std::fs::remove_dir_all(partial);
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(partial).arg(format!("numpy=={VERSION}"));
    run("installation of NumPy", &mut pip)?;
    std::fs::rename(partial, folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Builds the library that the script loads, and runs the script.
pub(crate) fn check() -> Result<(), String> {
    let Some(numpy) = installed() else { return Ok(()) };
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
