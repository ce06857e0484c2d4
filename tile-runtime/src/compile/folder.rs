//! Where compiled code is kept on disk: a folder that the environment names, else the platform's.
//!
//! What is in the folder is run, so the platform's is used only where nobody but the user can write to it. One that
//! the environment names is used as it is: who shares a folder knows with whom.

use crate::journal;
use std::path::{Path, PathBuf};
use std::sync::Once;
use tile_codegen::cache::Cache;

/// The environment variable that names the folder, or turns the disk cache off.
const FOLDER_VARIABLE: &str = "TILE_CACHE";
const OFF: &str = "off";

/// The most bytes that are kept on disk: tens of thousands of kernels.
const MOST_BYTES: u64 = 512 << 20;

/// The disk cache, unless it is turned off, nobody says where files may be kept, or others could put code there.
pub(super) fn cache() -> Option<Cache> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match variable(FOLDER_VARIABLE) {
        Some(set) if set == OFF => return None,
        Some(folder) => PathBuf::from(folder),
        None => users_own(platform_folder(&variable)?.join("tile"))?,
    };
    Some(Cache::new(folder).bounded(MOST_BYTES))
}

/// The folder, unless others can write to it, which is told once. One that doesn't exist will be made for its user alone.
fn users_own(folder: PathBuf) -> Option<PathBuf> {
    static TOLD: Once = Once::new();
    let Some(problem) = others_write_to(&folder) else { return Some(folder) };
    TOLD.call_once(|| journal::warn(&problem));
    None
}

/// Why others could put code into a folder; `None` where they can't, or where that isn't known.
#[cfg(unix)]
fn others_write_to(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(folder).ok()?;
    let users = [rustix::process::geteuid().as_raw(), ROOT];
    shared(folder, users.contains(&found.uid()), found.mode())
}

#[cfg(not(unix))]
fn others_write_to(_: &Path) -> Option<String> {
    None
}

/// Who may do everything anyway.
#[cfg(unix)]
const ROOT: u32 = 0;

/// What is wrong with a folder of the user's, or of somebody else's, that may be used by this mode.
#[cfg(unix)]
fn shared(folder: &Path, is_users: bool, mode: u32) -> Option<String> {
    const WRITTEN_BY_OTHERS: u32 = 0o022;
    let name = folder.display();
    let why = match is_users {
        false => "belongs to another user",
        true if mode & WRITTEN_BY_OTHERS == 0 => return None,
        true => "can be written to by others, who may have put code into it: remove it, and it is made anew",
    };
    Some(format!("compiled code isn't kept on disk: {name} {why}; {FOLDER_VARIABLE} names another folder"))
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

    #[test]
    fn a_folder_that_others_write_to_is_not_used() {
        let problem = |is_users, mode| shared(Path::new("/c/tile"), is_users, mode);
        for mode in [0o40_700, 0o40_755, 0o40_500] {
            assert_eq!(problem(true, mode), None, "{mode:o}");
        }
        let told = "compiled code isn't kept on disk: /c/tile can be written to by others, who may have put code \
                    into it: remove it, and it is made anew; TILE_CACHE names another folder";
        for mode in [0o40_770, 0o40_702, 0o41_777] {
            assert_eq!(problem(true, mode).as_deref(), Some(told), "{mode:o}");
        }
        let told = "compiled code isn't kept on disk: /c/tile belongs to another user; TILE_CACHE names another folder";
        assert_eq!(problem(false, 0o40_700).as_deref(), Some(told));
    }

    #[test]
    fn a_folder_that_is_to_be_made_is_the_users() {
        let folder = Path::new("/dev/null/tile");
        assert_eq!(users_own(folder.to_owned()).as_deref(), Some(folder));
    }
}
