//! Checks of the device code that `cargo build` leaves under `target/tile`.

use crate::steps::{output, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks that every example has code for every target, that `ptxas` assembles the PTX and that the code
/// objects are for AMD GPUs. Gives the number of checks.
pub(crate) fn check(folder: &Path, packages: &[&str], ptxas: Option<&Path>) -> Result<usize, String> {
    let mut checks = 0;
    for package in packages {
        let files = files_below(&folder.join(package))?;
        for (target, extension) in
            [("sm_80", "ptx"), ("sm_90a", "ptx"), ("gfx942", "hsaco"), ("gfx1100", "hsaco")]
        {
            let ending = format!(".{target}.{extension}");
            let mine: Vec<&PathBuf> =
                files.iter().filter(|path| path.to_string_lossy().ends_with(&ending)).collect();
            if mine.is_empty() {
                return Err(format!(
                    "`cargo build` left no code of {package} for {target} in {}",
                    folder.display()
                ));
            }
            for path in mine {
                match (extension, ptxas) {
                    ("ptx", Some(ptxas)) => assemble(ptxas, target, path)?,
                    ("ptx", None) => continue,
                    _ => read_code_object(target, path)?,
                }
                checks += 1;
            }
        }
    }
    Ok(checks)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().rev().take(3).map(|part| part.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn assemble(ptxas: &Path, target: &str, path: &Path) -> Result<(), String> {
    let cubin = path.with_extension("cubin");
    let mut command = Command::new(ptxas);
    command.arg("-v").arg(format!("-arch={target}")).arg(path).arg("-o").arg(&cubin);
    let text = run(&format!("ptxas {}", name(path)), &mut command)?;
    let wanted = ["registers", "spill stores"];
    for line in text.lines().filter(|line| wanted.iter().any(|word| line.contains(word))) {
        println!("    {}", line.trim_start_matches("ptxas info    :").trim());
    }
    Ok(())
}

fn read_code_object(target: &str, path: &Path) -> Result<(), String> {
    let (text, succeeded) =
        output(Command::new("llvm-readelf-22").arg("--file-header").arg("--notes").arg(path))?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.map_or("?", |line| line.rsplit(' ').next().unwrap_or("?")).to_owned()
    };
    let expected = [format!("amdgcn-amd-amdhsa--{target}"), ".kd".to_owned(), "EM_AMDGPU".to_owned()];
    if !succeeded || expected.iter().any(|part| !text.contains(part.as_str())) {
        return Err(format!("{} isn't a code object for {target}:\n{text}", path.display()));
    }
    let (vgprs, spills) = (field(".vgpr_count:"), field(".vgpr_spill_count:"));
    println!("✓ llvm-readelf {}: {vgprs} VGPRs, {spills} spilled", name(path));
    Ok(())
}
