//! `cargo xtask bench h200`: everything that the benchmark needs on a machine with a GPU, in one folder, and its run where
//! there is one. On that machine neither Rust nor LLVM is needed; the kernels are machine code in the library.

use crate::steps::{cargo, exists, output, root, run as run_step, target};
use crate::test::BENCHMARK;
use crate::{setup, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared library with the kernels.
pub(crate) const LIBRARY: &str = "libh200.so";
/// What is built.
const BUILT: [&str; 2] = [LIBRARY, "h200"];
/// The script and what it imports; its tests stay behind.
const SCRIPTS: [&str; 6] =
    ["bench.py", "library.py", "peers.py", "report.py", "rows.py", "triton_kernels.py"];
/// More is not carried to another machine.
const MOST_BYTES: u64 = 64 << 20;

/// Builds, packs, and runs what was packed where a GPU is at hand.
pub(crate) fn run() -> Result<(), String> {
    setup::llvm()?;
    let mut build = cargo(&["build", "--release", "--package", BENCHMARK]);
    match assembler()? {
        Some(ptxas) => {
            build.env("TILE_CUBIN_PTXAS", ptxas);
        }
        None => println!("  the driver will assemble the kernels when they are loaded"),
    }
    run_step("the benchmark with its kernels", &mut build)?;
    let folder = pack()?;
    if !exists("nvidia-smi") || !exists("python3") {
        println!("\nno GPU here: carry the folder to a machine with one, and there run");
        println!("  python3 {BENCHMARK}/bench.py     beside PyTorch, Triton and CuPy, those that are there");
        println!("  {BENCHMARK}/h200 cuda:0          without Python");
        return Ok(());
    }
    let mut script = Command::new("python3");
    script.arg(folder.join("bench.py")).arg("--output").arg(&folder);
    let status = script.status().map_err(|error| format!("python3: {error}"))?;
    if status.success() { Ok(()) } else { Err("the benchmark failed".to_owned()) }
}

/// The `ptxas` that `TILE_PTXAS` names, or the installed one.
fn assembler() -> Result<Option<PathBuf>, String> {
    match std::env::var_os("TILE_PTXAS") {
        Some(path) => Ok(Some(path.into())),
        None => tools::PTXAS.installed(),
    }
}

/// Copies what is needed to `h200` below the target folder, and says how large it is.
fn pack() -> Result<PathBuf, String> {
    let folder = target().join(BENCHMARK);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let built = BUILT.map(|name| target().join("release").join(name));
    let scripts = SCRIPTS.map(|name| scripts().join(name));
    let mut bytes = 0;
    for path in built.iter().chain(&scripts) {
        let name = path.file_name().expect("the lists are of files");
        let copied = fs::copy(path, folder.join(name));
        bytes += copied.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    fs::write(folder.join("commit"), commit()?).map_err(|error| format!("{}: {error}", folder.display()))?;
    let library = fs::read(&built[0]).map_err(|error| format!("{}: {error}", built[0].display()))?;
    println!(
        "✓ {}: {:.1} MiB in {} files",
        folder.display(),
        mebibytes(bytes),
        BUILT.len() + SCRIPTS.len() + 1
    );
    println!("  {}", required(&library));
    if bytes > MOST_BYTES {
        return Err(format!("that is more than the {} MiB that are carried", mebibytes(MOST_BYTES)));
    }
    Ok(folder)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn scripts() -> PathBuf {
    root().join("examples").join(BENCHMARK).join("bench")
}

/// The commit that was built, and whether files have been changed since.
fn commit() -> Result<String, String> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root()).args(arguments));
    let (head, known) = git(&["rev-parse", "HEAD"])?;
    let (changes, _) = git(&["status", "--porcelain", "--untracked-files=no"])?;
    if !known {
        return Ok("unknown\n".to_owned());
    }
    let changed = if changes.trim().is_empty() { "" } else { " with changes" };
    Ok(format!("{}{changed}\n", head.trim()))
}

/// The C library that a program needs, by the names of versions in it.
fn required(program: &[u8]) -> String {
    let versions = program.windows(PREFIX.len() + 2).filter_map(|window| {
        let digits = window.strip_prefix(PREFIX)?;
        std::str::from_utf8(digits).ok()?.trim_end_matches(['\0', '.']).parse::<u32>().ok()
    });
    match versions.max() {
        Some(newest) => format!("needs glibc 2.{newest} or later"),
        None => "needs no glibc".to_owned(),
    }
}

const PREFIX: &[u8] = b"GLIBC_2.";

/// Tests what the script can do without a GPU: its statistics, and that its rows are those of the library, which
/// `cargo build` has made. Left out where there is no Python.
pub(crate) fn check_script() -> Result<(), String> {
    if !exists("python3") {
        println!("  python3 can't be had, so the benchmark's script isn't tested");
        return Ok(());
    }
    // No bytecode beside the sources.
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.arg("-B").args(arguments).current_dir(scripts());
        command
    };
    run_step("tests of the benchmark's script", &mut python(&["-m", "unittest"]))?;
    for name in SCRIPTS {
        let parse = format!("import ast; ast.parse(open({name:?}).read())");
        run_step(&format!("syntax of {name}"), &mut python(&["-c", &parse]))?;
    }
    let library = absolute(&target().join("debug").join(LIBRARY))?;
    let mut dry = python(&["bench.py", "--dry-run", "--library"]);
    run_step("the script's rows are the library's", dry.arg(library))?;
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let names = b"GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0libc.so.6\0";
        assert_eq!(required(names), "needs glibc 2.34 or later");
        assert_eq!(required(b"libc.so.6"), "needs no glibc");
    }

    #[test]
    fn every_file_of_the_script_is_packed() {
        let entries = fs::read_dir(scripts()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".py") && !name.starts_with("test_"));
        names.sort();
        assert_eq!(names, SCRIPTS);
    }
}
