//! Links an AMD object to a code object (HSACO) with LLD: the one that every Rust toolchain brings, or one
//! that is installed.

use crate::error::Error;
use crate::whole_file;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A linker and the arguments that make it an ELF linker.
#[derive(Clone, Debug)]
struct Linker {
    program: PathBuf,
    flavor: &'static [&'static str],
}

/// Links one object.
pub(in crate::gpu) fn link(kernel: &str, object: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |message: String| Error::Link { kernel: kernel.to_owned(), message };
    static LINKER: OnceLock<Result<Linker, String>> = OnceLock::new();
    let linker = LINKER.get_or_init(find).as_ref().map_err(|message| failed(message.clone()))?;
    let folder = Folder::new().map_err(|error| failed(format!("no temporary folder: {error}")))?;
    let (input, output) = (folder.path.join("kernel.o"), folder.path.join("kernel.hsaco"));
    let io = |path: &Path, error: std::io::Error| failed(format!("{}: {error}", path.display()));
    std::fs::write(&input, object).map_err(|error| io(&input, error))?;
    let mut command = Command::new(&linker.program);
    command.args(linker.flavor).arg("-shared").arg(&input).arg("-o").arg(&output);
    let result = command.output().map_err(|error| io(&linker.program, error))?;
    if !result.status.success() {
        let words = String::from_utf8_lossy(&result.stderr).trim().to_owned();
        return Err(failed(format!("{} gave {}: {words}", linker.program.display(), result.status)));
    }
    std::fs::read(&output).map_err(|error| io(&output, error))
}

/// A folder that goes away with its value.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let path = |own: &str| std::env::temp_dir().join(format!("tile-link-{own}"));
        let ((), path) = whole_file::create(path, |path| std::fs::create_dir(path))?;
        Ok(Folder { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that can't be removed is litter in the temporary folder, not a failure to link.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The first linker that answers.
fn find() -> Result<Linker, String> {
    let mut tried = Vec::new();
    for linker in candidates(&mut tried) {
        let answer = Command::new(&linker.program).args(linker.flavor).arg("--version").output();
        match answer {
            Ok(answer) if answer.status.success() => return Ok(linker),
            Ok(answer) => tried.push(format!("`{}` gave {}", linker.program.display(), answer.status)),
            Err(error) => tried.push(format!("`{}`: {error}", linker.program.display())),
        }
    }
    Err(format!(
        "no LLD was found; install a Rust toolchain with rustup (it has rust-lld) or the package lld-22. Tried: {}",
        tried.join("; ")
    ))
}

fn candidates(tried: &mut Vec<String>) -> Vec<Linker> {
    let mut candidates = Vec::new();
    match rust_lld() {
        Ok(program) => candidates.push(Linker { program, flavor: &["-flavor", "gnu"] }),
        Err(message) => tried.push(message),
    }
    candidates.extend(["ld.lld-22", "ld.lld"].map(|name| Linker { program: name.into(), flavor: &[] }));
    candidates
}

/// `<sysroot>/lib/rustlib/<host>/bin/rust-lld` of the toolchain in use.
fn rust_lld() -> Result<PathBuf, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = Command::new(&rustc).args(["--print", "sysroot"]).output();
    let answer = answer.map_err(|error| format!("`{} --print sysroot`: {error}", rustc.to_string_lossy()))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    rust_lld_of(&sysroot, std::env::consts::EXE_SUFFIX)
}

/// The same of the toolchain in a folder, on a system where names of programs have a suffix.
fn rust_lld_of(sysroot: &Path, suffix: &str) -> Result<PathBuf, String> {
    let hosts = sysroot.join("lib").join("rustlib");
    let entries = std::fs::read_dir(&hosts).map_err(|error| format!("{}: {error}", hosts.display()))?;
    let name = format!("rust-lld{suffix}");
    let mut found = entries.flatten().map(|entry| entry.path().join("bin").join(&name));
    found.find(|path| path.exists()).ok_or_else(|| format!("no {name} below {}", hosts.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that a process of this number was killed in, or that belongs to somebody else.
    #[test]
    fn a_folder_that_is_left_is_passed_by() {
        let first = Folder::new().unwrap();
        let name = first.path.file_name().unwrap().to_str().unwrap();
        let (stem, number) = name.rsplit_once('-').unwrap();
        let number: usize = number.parse().unwrap();
        let next = (1..200).map(|i| first.path.with_file_name(format!("{stem}-{}", number + i)));
        // Another test may have one of them.
        let left: Vec<PathBuf> = next.filter(|path| std::fs::create_dir(path).is_ok()).collect();
        let folder = Folder::new();
        left.iter().for_each(|path| std::fs::remove_dir(path).unwrap());
        let folder = folder.unwrap();
        assert!(!left.contains(&folder.path) && folder.path.is_dir(), "{}", folder.path.display());
    }

    #[test]
    fn the_toolchain_has_a_linker_of_its_systems_name() {
        let sysroot = tempfile::tempdir().unwrap();
        let folder = sysroot.path().join("lib/rustlib/x86_64-pc-windows-msvc/bin");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("rust-lld.exe"), "").unwrap();
        assert_eq!(rust_lld_of(sysroot.path(), ".exe").unwrap(), folder.join("rust-lld.exe"));
        let hosts = sysroot.path().join("lib").join("rustlib");
        let none = format!("no rust-lld below {}", hosts.display());
        assert_eq!(rust_lld_of(sysroot.path(), "").unwrap_err(), none);
    }
}
