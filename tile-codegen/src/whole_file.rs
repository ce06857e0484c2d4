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

/// A new file beside another one, of a name that nobody else has: threads of one process may write the same file at once, and
/// so may processes of one number in containers that share the folder.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    loop {
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.{TEMPORARY}", std::process::id()));
        match File::create_new(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return file.map(|file| (file, temporary)),
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
