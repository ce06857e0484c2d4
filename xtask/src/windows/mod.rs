//! `cargo xtask windows`: the examples and tests as programs for Windows, which Wine runs: embedded native code, the reference
//! device, and the runtime's own tests.
//!
//! Everything is built here, with GNU's linker for Windows; nothing is asked of a machine with Windows.

use crate::setup;
use crate::steps::{cargo, exists, run, show_closing_lines, target};
use crate::test::EXAMPLES;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What Rust calls the machine, and the variable by which Cargo is told what runs its programs.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
const RUNNER: &str = "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER";

/// The compiler whose linker Rust asks for, and its package.
const COMPILER: (&str, &str) = ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-posix");

/// Where programs find Wine, the first that is there, and its package.
const WINE: ([&str; 3], &str) = (["wine64", "/usr/lib/wine/wine64", "wine"], "wine64");

/// A library that older versions of Wine lack, and its source.
const RANDOM: (&str, &str) = ("bcryptprimitives.dll", include_str!("bcryptprimitives.c"));

/// The kernels' tests. Those of layouts and files ask Cargo for the workspace, which isn't a program for Windows.
const TESTS: [&[&str]; 2] =
    [&["--package", "tile-runtime", "--lib"], &["--package", "tile", "--test", "main", "--", "kernels::"]];

/// Installs what is missing, builds, and runs.
pub(crate) fn run_all() -> Result<(), String> {
    setup::llvm()?;
    setup::program(COMPILER)?;
    setup::rust_target(TARGET)?;
    let wine = Wine::installed()?;
    for test in TESTS {
        let name = format!("tests for Windows, {}", test[1]);
        let shown = run(&name, wine.told(cargo(&["test", "--target", TARGET]).args(test)))?;
        show_closing_lines(&shown);
    }
    for example in EXAMPLES {
        let mut command = cargo(&["run", "--target", TARGET, "--package", example, "--", "cpu"]);
        run(&format!("example {example} for Windows, on cpu"), wine.told(&mut command))?;
    }
    Ok(())
}

/// Wine, and the folder with what it takes for a disk.
struct Wine {
    program: &'static str,
    prefix: PathBuf,
}

impl Wine {
    fn installed() -> Result<Wine, String> {
        let (programs, package) = WINE;
        let found = || programs.into_iter().find(|program| exists(program));
        if found().is_none() {
            setup::package(package)?;
        }
        let program =
            found().ok_or_else(|| format!("the package {package} has none of {}", programs.join(", ")))?;
        let wine = Wine { program, prefix: target().join("wine") };
        let system = wine.prefix.join("drive_c/windows/system32");
        if !system.exists() {
            run("a disk for Wine", wine.told(Command::new(program).args(["wineboot", "--init"])))?;
        }
        if !system.join(RANDOM.0).exists() {
            wine.add_library(&system)?;
        }
        Ok(wine)
    }

    fn add_library(&self, system: &Path) -> Result<(), String> {
        let (name, source) = RANDOM;
        let file = self.prefix.join("bcryptprimitives.c");
        std::fs::write(&file, source).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut compile = Command::new(COMPILER.0);
        compile.args(["-shared", "-o"]).arg(system.join(name)).arg(file).arg("-ladvapi32");
        run(&format!("{name} for Wine"), &mut compile).map(drop)
    }

    /// A command that runs programs, or is one, with this Wine.
    fn told<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env(RUNNER, self.program).env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all")
    }
}
