//! Code that is made at run time: from the disk, where an earlier run of some program has left it, else from the
//! compiler.
//!
//! Where the files are is decided here, their form and what makes two instances the same in `tile_codegen::cache`.

use crate::error::{Error, Result};
use crate::progress;
use crate::trace::{self, Origin};
use std::path::PathBuf;
use std::time::Instant;
use tile_codegen::cache::{Cache, Cached};
use tile_codegen::jit::{self, CpuKernel};
use tile_codegen::{Artifact, Options};
use tile_ir::{Instance, TargetDesc};

/// The environment variable that names the folder, or turns the disk cache off.
const FOLDER_VARIABLE: &str = "TILE_CACHE";
const OFF: &str = "off";

/// The most bytes that are kept on disk: tens of thousands of kernels.
const MOST_BYTES: u64 = 512 << 20;

/// The artifact of an instance for a target, from disk or compiled now.
///
/// # Errors
/// [`Error::Compile`].
pub(crate) fn artifact(instance: &Instance, target: &'static TargetDesc) -> Result<Artifact> {
    Ok(found(instance, target, Instant::now())?.artifact)
}

/// Native code of an instance for this processor, in this process.
///
/// # Errors
/// [`Error::Compile`].
pub(crate) fn cpu(instance: &Instance) -> Result<CpuKernel> {
    let target = TargetDesc::cpu();
    let cached = found(instance, target, Instant::now())?;
    // SAFETY: `tile_codegen` has compiled it now, or has found it whole under a key that names this processor.
    let loaded = unsafe { jit::load(&cached.artifact) };
    match (loaded, cached.hit, cache()) {
        (Ok(kernel), ..) => Ok(kernel),
        (Err(error), true, Some(cache)) => {
            trace::warn(&format!("{} can't be loaded and is made anew: {error}", cached.path.display()));
            let removed = cache.discard(&cached);
            removed.map_err(|error| failure(instance, &format!("{}: {error}", cached.path.display())))?;
            let cached = found(instance, target, Instant::now())?;
            // SAFETY: as above.
            unsafe { jit::load(&cached.artifact) }.map_err(|error| failure(instance, &error.to_string()))
        }
        (Err(error), ..) => Err(failure(instance, &error.to_string())),
    }
}

/// The artifact with where it was found, which is told.
fn found(instance: &Instance, target: &'static TargetDesc, start: Instant) -> Result<Cached> {
    let options = Options::default();
    let make = || match cache() {
        Some(cache) => cache.compile(instance, target, &options).map(|cached| (cached, true)),
        None => {
            let artifact = tile_codegen::compile(instance, target, &options)?;
            Ok((Cached { artifact, hit: false, path: PathBuf::new(), warning: None }, false))
        }
    };
    let made = progress::told(|| trace::title(instance, target.name), make);
    let (cached, is_kept) =
        made.map_err(|error: tile_codegen::Error| failure(instance, &error.to_string()))?;
    let origin = if cached.hit { Origin::Disk } else { Origin::Compiled };
    let file = (is_kept && cached.warning.is_none()).then_some(cached.path.as_path());
    trace::found(origin, start.elapsed(), file);
    if let Some(warning) = &cached.warning {
        trace::warn(warning);
    }
    Ok(cached)
}

fn failure(instance: &Instance, message: &str) -> Error {
    Error::Compile { kernel: instance.name.clone(), message: message.to_owned() }
}

/// The disk cache, unless it is turned off or nobody says where files may be kept. A folder that everyone can write to
/// is never chosen: what is in the cache is run.
fn cache() -> Option<Cache> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match variable(FOLDER_VARIABLE) {
        Some(set) if set == OFF => return None,
        Some(folder) => PathBuf::from(folder),
        None => platform_folder(&variable)?.join("tile"),
    };
    Some(Cache::new(folder).bounded(MOST_BYTES))
}

/// Where programs of a user keep what can be made anew, by the platform's rules.
fn platform_folder(variable: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let home = |below: &str| Some(PathBuf::from(variable("HOME")?).join(below));
    if cfg!(windows) {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home("Library/Caches")
    } else {
        // XDG Base Directory Specification: a path that isn't absolute is to be ignored.
        let set = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        set.or_else(|| home(".cache"))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn files_are_kept_where_the_platform_says() {
        let folder = |set: &'static [(&str, &str)]| {
            let variable = |name: &str| Some(set.iter().find(|(known, _)| *known == name)?.1.into());
            platform_folder(&variable)
        };
        assert_eq!(folder(&[("HOME", "/home/a")]).as_deref(), Some(Path::new("/home/a/.cache")));
        let both = folder(&[("HOME", "/home/a"), ("XDG_CACHE_HOME", "/cache")]);
        assert_eq!(both.as_deref(), Some(Path::new("/cache")));
        let relative = folder(&[("HOME", "/home/a"), ("XDG_CACHE_HOME", "cache")]);
        assert_eq!(relative.as_deref(), Some(Path::new("/home/a/.cache")));
        assert_eq!(folder(&[]), None);
    }
}
