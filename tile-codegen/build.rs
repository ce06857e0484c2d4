//! Tells the crate what its sources are: artifacts on disk are of one compiler, not of one version of it.

#[path = "src/checksum.rs"]
mod checksum;

use checksum::checksum;
use std::io::Result;
use std::path::{Path, PathBuf};

/// What decides what code becomes of an instance. Of the other crates there are sources beside this one's where it is
/// developed; elsewhere their versions stand for them.
const SOURCES: [&str; 3] = ["src", "../tile-ir/src", "../tile-layout/src"];

fn main() -> Result<()> {
    let mut files = Vec::new();
    for folder in SOURCES.map(Path::new).into_iter().filter(|folder| folder.exists()) {
        println!("cargo:rerun-if-changed={}", folder.display());
        collect(folder, &mut files)?;
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        sources.extend(file.to_string_lossy().bytes());
        sources.extend(std::fs::read(&file)?);
    }
    println!("cargo:rustc-env=TILE_CODEGEN_SOURCES={:016x}", checksum(sources));
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
