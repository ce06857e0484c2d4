//! Installs what is missing: LLVM 22 from the distribution's packages, `ptxas` from its PyPI package.

use crate::steps::{exists, run, target};
use std::path::PathBuf;
use std::process::Command;

/// What `tile-codegen` links, and what the tests read device code with.
const LLVM_PACKAGE: &str = "llvm-22-dev";
/// A linker driver for Rust itself and for LLVM's library.
const COMPILER_PACKAGE: &str = "gcc";
/// NVIDIA's assembler, as a PyPI package.
const PTXAS_PACKAGE: &str = "nvidia-cuda-nvcc==13.5.37";

/// Makes sure that LLVM 22 is there.
pub(crate) fn llvm() -> Result<(), String> {
    let mut missing = Vec::new();
    if !exists("llvm-config-22") && std::env::var_os("LLVM_SYS_221_PREFIX").is_none() {
        missing.push(LLVM_PACKAGE);
    }
    if !exists("cc") {
        missing.push(COMPILER_PACKAGE);
    }
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing).map_err(|reason| {
        format!(
            "{reason}\n\nThe project needs LLVM 22 with its headers. On Debian and Ubuntu that is the package \
             {LLVM_PACKAGE}; install it by hand, or set LLVM_SYS_221_PREFIX to where LLVM 22 is installed."
        )
    })
}

/// Installs Debian packages, through sudo where that is needed.
fn install(packages: &[&str]) -> Result<(), String> {
    if !exists("apt-get") {
        return Err("this distribution has no apt-get, so nothing can be installed automatically".to_owned());
    }
    println!("installing {} with apt-get", packages.join(", "));
    run("apt-get update", apt(&["update"])?.env("DEBIAN_FRONTEND", "noninteractive"))?;
    let arguments = [&["install", "-y", "--no-install-recommends"], packages].concat();
    run("apt-get install", apt(&arguments)?.env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(())
}

fn apt(arguments: &[&str]) -> Result<Command, String> {
    let is_root =
        Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let mut command = if is_root {
        Command::new("apt-get")
    } else if exists("sudo") {
        let mut command = Command::new("sudo");
        command.arg("apt-get");
        command
    } else {
        return Err("installing packages needs root, and there is no sudo".to_owned());
    };
    command.args(arguments);
    Ok(command)
}

/// `ptxas` in the target folder; `None`, after saying why, where it can't be had.
pub(crate) fn ptxas() -> Result<Option<PathBuf>, String> {
    let path = target().join("tools").join("ptxas");
    if path.exists() {
        return Ok(Some(path));
    }
    match fetch_ptxas(&path) {
        Ok(()) => Ok(Some(path)),
        Err(reason) => {
            println!(
                "ptxas can't be had, so PTX is not assembled by this run: {}",
                reason.lines().last().unwrap_or("")
            );
            Ok(None)
        }
    }
}

fn fetch_ptxas(path: &std::path::Path) -> Result<(), String> {
    let folder = target().join("tools").join("wheel");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder_text = folder.display().to_string();
    if !python_has_pip() {
        install(&["python3", "python3-pip"])?;
    }
    let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", &folder_text, PTXAS_PACKAGE];
    run("download of ptxas", Command::new("python3").args(download))?;
    let wheel = std::fs::read_dir(&folder)
        .map_err(|error| error.to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or("the download holds no wheel")?;
    let wheel = wheel.display().to_string();
    run("unpacking ptxas", Command::new("python3").args(["-m", "zipfile", "-e", &wheel, &folder_text]))?;
    let unpacked = folder.join("nvidia").join("cu13").join("bin").join("ptxas");
    std::fs::copy(&unpacked, path).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    make_executable(path)?;
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

fn python_has_pip() -> bool {
    Command::new("python3")
        .args(["-m", "pip", "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}

fn make_executable(path: &std::path::Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())
}
