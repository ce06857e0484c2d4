//! Installs what is missing: LLVM 22 and QEMU from the distribution's packages, and NVIDIA's [`tools`].

use crate::steps::{cargo, exists, output, root, run};
use crate::tools;
use std::process::Command;

/// What `tile-codegen` links, and what the tests read device code with.
const LLVM_PACKAGE: &str = "llvm-22-dev";
/// The crate whose build script looks for LLVM.
const LLVM_BINDINGS: &str = "llvm-sys";
/// A linker driver for Rust itself and for LLVM's library.
const COMPILER_PACKAGE: &str = "gcc";
/// What runs programs for AArch64: its program, and the package.
const EMULATOR: (&str, &str) = ("qemu-aarch64", "qemu-user");

/// Installs everything.
pub(crate) fn all() -> Result<(), String> {
    llvm()?;
    emulator()?;
    tools::PTXAS.installed()?;
    tools::NVDISASM.installed()?;
    Ok(())
}

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
    })?;
    forget_that_llvm_was_missing()
}

/// A build before LLVM was there has failed, and cargo would not look for it again.
fn forget_that_llvm_was_missing() -> Result<(), String> {
    for profile in ["dev", "release"] {
        let mut clean = cargo(&["clean", "--quiet", "--package", LLVM_BINDINGS, "--profile", profile]);
        run(&format!("cargo clean of {LLVM_BINDINGS}, {profile}"), &mut clean)?;
    }
    Ok(())
}

/// Makes sure that there is QEMU for AArch64.
pub(crate) fn emulator() -> Result<(), String> {
    program(EMULATOR).map_err(|reason| format!("{reason} Code for AArch64 is tested by {}.", EMULATOR.0))
}

/// Makes sure that there is a program, which a package has.
pub(crate) fn program((program, of): (&str, &str)) -> Result<(), String> {
    if exists(program) { Ok(()) } else { package(of) }
}

/// Installs a package.
pub(crate) fn package(name: &str) -> Result<(), String> {
    install(&[name])
        .map_err(|reason| format!("{reason}\n\nOn Debian and Ubuntu the package that is missing is {name}."))
}

/// Makes sure that there is Rust's standard library for a machine, by Rust's name of it.
pub(crate) fn rust_target(name: &str) -> Result<(), String> {
    let (text, added) = output(Command::new("rustup").args(["target", "add", name]).current_dir(root()))?;
    if added { Ok(()) } else { Err(text) }
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

/// Makes sure that Python can download packages.
pub(crate) fn pip() -> Result<(), String> {
    if python_has_pip() { Ok(()) } else { install(&["python3", "python3-pip"]) }
}

fn python_has_pip() -> bool {
    Command::new("python3")
        .args(["-m", "pip", "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}
