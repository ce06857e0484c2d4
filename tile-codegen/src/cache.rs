//! Compiled artifacts on disk, so that an unchanged kernel isn't compiled again: for build scripts, and for programs that
//! compile at run time.
//!
//! A file is named by the hash of its key and holds the key itself, the artifact and a checksum. A file that
//! is cut short, altered or not ours is reported as damaged and made anew: it never becomes code. Files are
//! written beside their place and renamed, so readers and writers of several processes see whole files only. A checksum
//! finds damage, not malice: who can write to the folder chooses what code runs, so it is made for its owner alone.

mod evict;
mod file;

use crate::artifact::Artifact;
use crate::checksum::checksum;
use crate::{Error, Options, compile, compiler, whole_file};
use file::MAGIC;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tile_ir::{Instance, TargetDesc, text};

/// A folder of artifacts.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    most_bytes: Option<u64>,
}

/// An artifact, and what happened on the way.
#[derive(Debug)]
pub struct Cached {
    /// The artifact.
    pub artifact: Artifact,
    /// Whether it was on disk.
    pub hit: bool,
    /// The file that it is in, unless it couldn't be written.
    pub path: Option<PathBuf>,
    /// What a user should hear of: a file that is damaged or can't be read, or a folder that can't be written.
    pub warning: Option<String>,
}

impl Cache {
    /// A cache in this folder, which is made when first written to.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), most_bytes: None }
    }

    /// The cache with a bound on its size: where a new file goes beyond it, those that were used longest ago are removed.
    #[must_use]
    pub fn bounded(self, most_bytes: u64) -> Cache {
        Cache { most_bytes: Some(most_bytes), ..self }
    }

    /// The artifact of an instance, from disk or compiled now.
    ///
    /// # Errors
    /// [`Error`] where the kernel can't be compiled. Trouble with the cache is a warning.
    pub fn compile(
        &self,
        instance: &Instance,
        target: &TargetDesc,
        options: &Options,
    ) -> Result<Cached, Error> {
        let key = key(instance, target, options);
        let path = self.path(&key);
        let mut warning = match self.read(&path, &key) {
            Ok(Some(artifact)) => return Ok(Cached { artifact, hit: true, path: Some(path), warning: None }),
            Ok(None) => None,
            Err(warning) => Some(warning),
        };
        let artifact = compile(instance, target, options)?;
        let written = self.write(&path, &key, &artifact);
        if let Err(error) = &written {
            warning = Some(format!("{} can't be written: {error}", path.display()));
        }
        Ok(Cached { artifact, hit: false, path: written.is_ok().then_some(path), warning })
    }

    /// Removes what was found on disk and is of no use, so that it is compiled the next time.
    ///
    /// # Errors
    /// Why it can't be removed.
    pub fn discard(&self, cached: &Cached) -> io::Result<()> {
        cached.path.as_deref().map_or(Ok(()), remove)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{:016x}.{EXTENSION}", checksum(key.bytes())))
    }

    /// Reads a file; `None` where there is none or it is of another key with the same hash.
    ///
    /// # Errors
    /// What a user should know of it, which is no error of the compilation.
    fn read(&self, path: &Path, key: &str) -> Result<Option<Artifact>, String> {
        let unread = |error: io::Error| format!("{} can't be read: {error}", path.display());
        let damaged = |reason| format!("{} is damaged ({reason}) and was made anew", path.display());
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unread(error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unread)?;
        let artifact = file::decode(&bytes, key).map_err(damaged)?;
        if self.most_bytes.is_some() {
            // When it was used last. Where that can't be written, the file is removed sooner.
            let _ = file.set_modified(SystemTime::now());
        }
        Ok(artifact)
    }

    fn write(&self, path: &Path, key: &str, artifact: &Artifact) -> io::Result<()> {
        make(&self.folder)?;
        whole_file::write(path, &file::encode(key, artifact))?;
        if let Some(most) = self.most_bytes {
            evict::evict(&self.folder, most);
        }
        Ok(())
    }
}

/// What the name of a file ends with.
const EXTENSION: &str = "tile";

/// Removes a file, which another process may have removed already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a folder that its owner alone can write to.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Everything that the code depends on.
fn key(instance: &Instance, target: &TargetDesc, options: &Options) -> String {
    let host = if options.cpu == crate::Cpu::Host { crate::llvm::host_name() } else { String::new() };
    let compiler = compiler();
    format!("{MAGIC} {compiler}\n{target} {options:?} {host}\n{}", text::print(instance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole_file::TEMPORARY;

    fn instance() -> Instance {
        let source = "kernel @k(%y: mut tensor<n x f32>) {\n%v = partition %y [4] : mut partition<n x f32, [4]>\n%0 = constant 1.0 : f32\n%t = splat %0 : tile<4 x f32>\nstore_masked %v, %t\n}";
        Instance::parse(source, &[]).unwrap()
    }

    /// A cache, and its folder, which goes when the test ends.
    fn cache() -> (Cache, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Cache::new(folder.path()), folder)
    }

    #[test]
    fn a_second_compilation_is_a_hit() {
        let ((cache, _folder), options) = (cache(), Options::default());
        let first = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        let second = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        assert!(!first.hit && second.hit);
        assert_eq!(first.artifact, second.artifact);
        let other = Options { symbol: Some("other".into()), ..options };
        assert!(!cache.compile(&instance(), TargetDesc::cpu(), &other).unwrap().hit);
    }

    /// Which may be whole: of what the system refuses, another one is said.
    #[cfg(unix)]
    #[test]
    fn a_file_that_can_not_be_read_is_not_called_damaged() {
        let ((cache, _folder), options) = (cache(), Options::default());
        let path = cache.path(&key(&instance(), TargetDesc::cpu(), &options));
        // What leads to itself can't be opened, also not by somebody whom no permissions stop.
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let unread = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        let warning = unread.warning.unwrap();
        assert!(
            !unread.hit && warning.starts_with(&format!("{} can't be read: ", path.display())),
            "{warning}"
        );
        assert!(cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().hit, "it was replaced");
        // What is no file can be opened, and isn't read either.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let unread = cache.read(&path, &key(&instance(), TargetDesc::cpu(), &options)).unwrap_err();
        assert!(unread.starts_with(&format!("{} can't be read: ", path.display())), "{unread}");
    }

    #[test]
    fn damaged_files_are_reported_and_made_anew() {
        let ((cache, _folder), options) = (cache(), Options::default());
        let good = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().artifact;
        let path = cache.path(&key(&instance(), TargetDesc::cpu(), &options));
        let bytes = fs::read(&path).unwrap();
        let flipped = {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        };
        for damaged in
            [bytes[..bytes.len() - 1].to_vec(), bytes[..20].to_vec(), Vec::new(), flipped, vec![7; 500]]
        {
            fs::write(&path, damaged).unwrap();
            let again = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
            assert!(!again.hit && again.warning.unwrap().contains("damaged"));
            assert_eq!(again.artifact, good);
            assert!(cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().hit);
        }
    }

    /// Containers that share a folder have processes of one number, and each counts from 0: a name that is taken is somebody
    /// else's file, which is being written.
    #[test]
    fn what_somebody_else_writes_is_left_alone() {
        let ((cache, _folder), options) = (cache(), Options::default());
        let path = cache.path(&key(&instance(), TargetDesc::cpu(), &options));
        let theirs: Vec<PathBuf> = (0..1000)
            .map(|number| path.with_extension(format!("{}-{number}.{TEMPORARY}", std::process::id())))
            .collect();
        theirs.iter().for_each(|path| fs::write(path, "theirs").unwrap());
        let cached = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        assert!(cached.warning.is_none(), "{:?}", cached.warning);
        assert!(cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().hit);
        assert!(theirs.iter().all(|path| fs::read(path).is_ok_and(|bytes| bytes == b"theirs")));
    }

    /// Removed is what wasn't used since: the first of three is read again before there is no room for all.
    #[test]
    fn a_bound_keeps_what_was_used() {
        let named = |name: &str| Options { symbol: Some(name.to_owned()), ..Options::default() };
        let (cache, _folder) = cache();
        let hit = |cache: &Cache, name: &str| {
            let cached = cache.compile(&instance(), TargetDesc::cpu(), &named(name)).unwrap();
            assert!(cached.warning.is_none(), "{:?}", cached.warning);
            // Times of files may be as coarse as the system's clock.
            std::thread::sleep(std::time::Duration::from_millis(20));
            (cached.hit, fs::metadata(cached.path.unwrap()).unwrap().len())
        };
        let (_, bytes) = hit(&cache, "a");
        let bounded = cache.bounded(3 * bytes + bytes / 2);
        assert!(!hit(&bounded, "b").0 && !hit(&bounded, "c").0 && hit(&bounded, "a").0);
        // Four are too many; of these, two remain.
        assert!(!hit(&bounded, "d").0);
        assert!(hit(&bounded, "a").0 && hit(&bounded, "d").0);
        assert!(!hit(&bounded, "b").0);
    }

    #[test]
    fn what_is_of_no_use_can_be_discarded() {
        let ((cache, _folder), options) = (cache(), Options::default());
        let cached = cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap();
        cache.discard(&cached).unwrap();
        assert!(!cached.path.unwrap().exists());
        assert!(!cache.compile(&instance(), TargetDesc::cpu(), &options).unwrap().hit);
    }
}
