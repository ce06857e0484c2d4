//! Code that is made at run time: from the disk, where an earlier run of some program has left it, else from the
//! compiler.
//!
//! Where the files are is decided here, their form and what makes two instances the same in `tile_codegen::cache`.

use crate::error::{Error, Result};
use crate::journal::{self, Origin};
use crate::progress;
use std::path::PathBuf;
use std::time::Instant;
use tile_codegen::cache::{Cache, Cached};
use tile_codegen::jit::{self, CpuKernel};
use tile_codegen::{Artifact, Cpu, Options};
use tile_ir::{Instance, TargetDesc};

/// The environment variable that names the folder, or turns the disk cache off.
const FOLDER_VARIABLE: &str = "TILE_CACHE";
const OFF: &str = "off";

/// The most bytes that are kept on disk: tens of thousands of kernels.
const MOST_BYTES: u64 = 512 << 20;

/// An artifact, and where it is from.
struct Found {
    cached: Cached,
    /// The cache that was asked.
    cache: Option<Cache>,
}

/// The artifact of an instance for a target, from disk or compiled now.
///
/// # Errors
/// [`Error::Compile`].
pub(crate) fn artifact(instance: &Instance, target: &'static TargetDesc) -> Result<Artifact> {
    let start = Instant::now();
    let found = Found::of(instance, target)?;
    found.tell(start);
    Ok(found.cached.artifact)
}

/// Native code of an instance for this processor, or the level of it that is asked for, in this process.
///
/// # Errors
/// [`Error::Compile`].
pub(crate) fn cpu(instance: &Instance) -> Result<CpuKernel> {
    let start = Instant::now();
    let found = Found::of(instance, TargetDesc::cpu())?;
    let (kernel, found) = match (found.load(), &found.cache) {
        (Err(problem), Some(cache)) if found.cached.hit => {
            journal::warn(&format!("a file of the disk cache can't be loaded and is made anew: {problem}"));
            let removed = cache.discard(&found.cached);
            removed.map_err(|error| {
                failure(instance, &format!("{problem}; its file can't be removed: {error}"))
            })?;
            let anew = Found::of(instance, TargetDesc::cpu())?;
            (anew.load(), anew)
        }
        (loaded, _) => (loaded, found),
    };
    let kernel = kernel.map_err(|error| failure(instance, &error.to_string()))?;
    found.tell(start);
    Ok(kernel)
}

impl Found {
    fn of(instance: &Instance, target: &'static TargetDesc) -> Result<Found> {
        let cpu = crate::cpu::levels::asked().map_or(Cpu::Host, Cpu::Level);
        let (cache, options) = (cache(), Options { cpu, ..Options::default() });
        let make = || match &cache {
            Some(cache) => cache.compile(instance, target, &options),
            None => {
                let artifact = tile_codegen::compile(instance, target, &options)?;
                Ok(Cached { artifact, hit: false, path: None, warning: None })
            }
        };
        let made = progress::told(|| journal::title(instance, target.name), make);
        let cached = made.map_err(|error: tile_codegen::Error| failure(instance, &error.to_string()))?;
        Ok(Found { cached, cache })
    }

    fn load(&self) -> std::result::Result<CpuKernel, tile_codegen::Error> {
        // SAFETY: `tile_codegen` has compiled it for this processor or a level that it has, now or where the cache has it
        // from: its key names either, and its checksum says that it is whole.
        unsafe { jit::load(&self.cached.artifact) }
    }

    fn tell(&self, start: Instant) {
        let Cached { hit, path, warning, .. } = &self.cached;
        if let Some(warning) = warning {
            journal::warn(warning);
        }
        let origin = if *hit { Origin::Disk } else { Origin::Compiled };
        journal::found(origin, start.elapsed(), path.as_deref());
    }
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
