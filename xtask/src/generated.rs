//! Files that a command makes of the sources: it writes them, or with `--check` compares what is there with what it would
//! write.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a command makes.
pub(crate) struct Generated {
    /// The command that writes it, after `cargo xtask`.
    pub(crate) command: &'static str,
    /// Every file with its text.
    pub(crate) files: BTreeMap<PathBuf, String>,
    /// Files that an earlier run made and this one doesn't.
    pub(crate) leftovers: Vec<PathBuf>,
}

impl Generated {
    /// Writes every file, and removes what is left over.
    pub(crate) fn write(&self) -> Result<(), String> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| format!("{path}: {error}")
        };
        for path in &self.leftovers {
            fs::remove_file(path).map_err(failed(path))?;
        }
        for (path, text) in &self.files {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(failed(folder))?;
            }
            fs::write(path, text).map_err(failed(path))?;
        }
        println!("✓ {} files of `cargo xtask {}`", self.files.len(), self.command);
        Ok(())
    }

    /// Fails where a file is missing, stale or left over.
    pub(crate) fn check(&self) -> Result<(), String> {
        let stale =
            self.files.iter().filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text));
        let wrong = stale.map(|(path, _)| path).chain(&self.leftovers);
        let names: Vec<String> = wrong.map(|path| path.display().to_string()).collect();
        if names.is_empty() {
            println!("✓ all {} files of `cargo xtask {}` are current", self.files.len(), self.command);
            return Ok(());
        }
        Err(format!("these files are stale; run `cargo xtask {}`:\n{}", self.command, names.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_then_written() {
        let folder = std::env::temp_dir().join(format!("tile-generated-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let (page, old) = (folder.join("pages/page.md"), folder.join("old.md"));
        fs::write(&old, "old").expect("a file in it");
        let made = |leftovers: &[&PathBuf]| Generated {
            command: "pages",
            files: BTreeMap::from([(page.clone(), "new".to_owned())]),
            leftovers: leftovers.iter().copied().cloned().collect(),
        };
        let wrong = made(&[&old]).check().expect_err("nothing is written yet");
        let names = format!("{}\n{}", page.display(), old.display());
        assert_eq!(wrong, format!("these files are stale; run `cargo xtask pages`:\n{names}"));
        made(&[&old]).write().expect("the folder is writable");
        assert_eq!(made(&[]).check(), Ok(()));
        assert!(!old.exists());
        fs::write(&page, "other").expect("the page is writable");
        assert!(made(&[]).check().is_err());
        fs::remove_dir_all(&folder).expect("the folder is the test's");
    }
}
