//! Files that others may read, or write too, at any time: each is written beside its place and renamed, so that nobody sees
//! half of one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// What the name of a file ends with that is being written.
pub(crate) const TEMPORARY: &str = "tmp";

/// How old such a file must be to have been left by a process that has ended.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// Puts a file into a folder that is there, in the place of one that may be.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut new, temporary) = beside(path)?;
    let written = new.write_all(bytes);
    drop(new);
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        // Half a file is of no use; where it can't be removed either, it is when it is old.
        let _ = fs::remove_file(&temporary);
    })
}

/// A new file beside another one.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let temporary = |own: &str| path.with_extension(format!("{own}.{TEMPORARY}"));
    create(temporary, |path| File::create_new(path))
}

/// Creates what has a name that nobody else has: threads of one process may want one at once, and so may processes of one
/// number in containers that share the folder; and a process that was killed leaves its own. `place` makes a path of the own
/// part of a name, `create` fails where there is something already.
pub(crate) fn create<T>(
    place: impl Fn(&str) -> PathBuf,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    static CREATED: AtomicUsize = AtomicUsize::new(0);
    loop {
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = place(&format!("{}-{number}", std::process::id()));
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|created| (created, path)),
        }
    }
}

/// Whether a file is one that somebody is writing.
pub(crate) fn is_being_written(path: &Path) -> bool {
    let modified = || fs::metadata(path).and_then(|data| data.modified());
    path.extension().is_some_and(|extension| extension == TEMPORARY)
        && modified().is_ok_and(|at| !is_abandoned(at))
}

/// Whether nobody will finish a file that was being written then.
pub(crate) fn is_abandoned(modified: SystemTime) -> bool {
    SystemTime::now().checked_sub(ABANDONED).is_some_and(|long_ago| modified < long_ago)
}
