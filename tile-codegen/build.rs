//! Tells the crate what its sources are: artifacts on disk are of one compiler, not of one version of it.

use std::io::Result;
use std::path::{Path, PathBuf};

/// What decides what code becomes of an instance. Of the other crates there are sources beside this one's where it is
/// developed; elsewhere the version stands for them.
const SOURCES: [&str; 3] = ["src", "../tile-ir/src", "../tile-layout/src"];

fn main() -> Result<()> {
    let mut files = Vec::new();
    for folder in SOURCES.map(Path::new).into_iter().filter(|folder| folder.exists()) {
        println!("cargo:rerun-if-changed={}", folder.display());
        collect(folder, &mut files)?;
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.to_string_lossy().into_owned().into_bytes();
        hash = name.into_iter().chain(std::fs::read(&file)?).fold(hash, fnv1a);
    }
    println!("cargo:rustc-env=TILE_CODEGEN_SOURCES={hash:016x}");
    Ok(())
}

/// The files in a folder and in those below it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// A step of the hash FNV-1a.
fn fnv1a(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}
