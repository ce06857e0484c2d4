//! Keeps a cache's folder small: what was used longest ago goes first.
//!
//! Several processes may do so at once, and users who share the folder. A file that another one has removed already, or that is
//! another user's, is no error, and one that is being read stays readable by who has opened it.

use super::{EXTENSION, remove};
use crate::whole_file::{TEMPORARY, is_abandoned};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file of the cache.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Removes what was used longest ago until the files have three quarters of so many bytes, if they have more; and what
/// nobody will finish. Files of other names are left alone.
pub(super) fn evict(folder: &Path, most_bytes: u64) {
    let Ok((mut finished, unfinished)) = entries(folder) else { return };
    for entry in unfinished.iter().filter(|entry| is_abandoned(entry.used)) {
        let _ = remove(&entry.path);
    }
    let mut bytes: u64 = finished.iter().map(|entry| entry.bytes).sum();
    if bytes <= most_bytes {
        return;
    }
    finished.sort_by_key(|entry| entry.used);
    for entry in finished {
        if bytes <= most_bytes / 4 * 3 {
            break;
        }
        if remove(&entry.path).is_ok() {
            bytes -= entry.bytes;
        }
    }
}

/// The files that are finished, and those that aren't.
fn entries(folder: &Path) -> io::Result<(Vec<Entry>, Vec<Entry>)> {
    let (mut finished, mut unfinished) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let list = match path.extension().and_then(|extension| extension.to_str()) {
            _ if !is_ours(&path) => continue,
            Some(EXTENSION) => &mut finished,
            Some(TEMPORARY) => &mut unfinished,
            _ => continue,
        };
        // It may have been removed since.
        let Ok(data) = fs::metadata(&path) else { continue };
        list.push(Entry { path, bytes: data.len(), used: data.modified()? });
    }
    Ok((finished, unfinished))
}

/// Whether a file's name begins with a hash.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let hash = name.split('.').next().unwrap_or_default();
    hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tile_test_edit::Edit;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = std::env::temp_dir().join(format!("tile-evict-test-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let now = SystemTime::now();
        let write = |name: &str, bytes: usize, minutes_ago: u64| {
            fs::write(folder.join(name), vec![0; bytes]).unwrap();
            let file = fs::File::options().write(true).open(folder.join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(60 * minutes_ago)).unwrap();
        };
        write("0000000000000001.tile", 40, 3);
        write("0000000000000002.tile", 40, 1);
        write("0000000000000003.tile", 40, 2);
        write("0000000000000004.tile", 40, 4);
        write("0000000000000005.77-0.tmp", 40, 61);
        write("0000000000000006.77-1.tmp", 40, 59);
        write("notes.tile", 4000, 100);
        write("photo.tmp", 4000, 100);
        let left = |most: u64| {
            evict(&folder, most);
            let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names.join(" ").edit("000000000000000", "")
        };
        assert_eq!(left(160), "1.tile 2.tile 3.tile 4.tile 6.77-1.tmp notes.tile photo.tmp");
        assert_eq!(left(159), "2.tile 3.tile 6.77-1.tmp notes.tile photo.tmp");
        assert_eq!(left(0), "6.77-1.tmp notes.tile photo.tmp");
        fs::remove_dir_all(&folder).unwrap();
    }
}
