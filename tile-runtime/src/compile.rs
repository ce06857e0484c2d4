//! Code that is made at run time: from the disk, where an earlier run of some program has left it, else from the
//! compiler.
//!
//! Where the files are is decided in [`folder`], their form and what makes two instances the same in `tile_codegen::cache`.

mod folder;

use crate::error::{Error, Result};
use crate::journal::{self, Origin};
use crate::progress;
use std::time::Instant;
use tile_codegen::cache::{Cache, Cached};
use tile_codegen::jit::{self, CpuKernel};
use tile_codegen::{Artifact, Cpu, Options};
use tile_ir::{Instance, TargetDesc};

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
        let (cache, options) = (folder::cache(), Options { cpu, ..Options::default() });
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
