//! NVIDIA's tools, from the PyPI packages that hold them, in `tools` below the target folder. They are one release: what
//! one writes the other reads, and the numbers of `docs/codegen-budgets.md` are theirs.

use crate::setup;
use crate::steps::{if_had, output, run, target};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release of all tools.
pub(crate) const VERSION: &str = "13.5.37";

/// A program and the package that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    name: &'static str,
    package: &'static str,
}

/// The assembler of PTX.
pub(crate) const PTXAS: Tool = Tool { name: "ptxas", package: "nvidia-cuda-nvcc" };

/// The disassembler of what `ptxas` makes.
pub(crate) const NVDISASM: Tool = Tool { name: "nvdisasm", package: "nvidia-cuda-nvdisasm" };

impl Tool {
    /// The program, installed if it isn't, or is of another release; `None`, after saying why, where it can't be had.
    pub(crate) fn installed(self) -> Result<Option<PathBuf>, String> {
        let path = target().join("tools").join(self.name);
        let said = path.exists().then(|| output(Command::new(&path).arg("--version")));
        if matches!(said, Some(Ok((text, true))) if is_of_release(&text)) {
            return Ok(Some(path));
        }
        Ok(if_had(self.name, self.fetch(&path)).map(|()| path))
    }

    fn fetch(self, path: &Path) -> Result<(), String> {
        let folder = target().join("tools").join(format!("{}-wheel", self.name));
        // What an interrupted download has left may be of another release.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let folder_text = folder.display().to_string();
        setup::pip()?;
        let package = format!("{}=={VERSION}", self.package);
        let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", &folder_text, &package];
        run(&format!("download of {}", self.name), Command::new("python3").args(download))?;
        let wheel = wheel_in(&folder)?.display().to_string();
        let unpack = ["-m", "zipfile", "-e", &wheel, &folder_text];
        run(&format!("unpacking {}", self.name), Command::new("python3").args(unpack))?;
        let unpacked = folder.join("nvidia").join("cu13").join("bin").join(self.name);
        make_executable(&unpacked)?;
        std::fs::rename(&unpacked, path).map_err(|error| format!("{}: {error}", unpacked.display()))?;
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
    }
}

/// Whether a tool says that it is of [`VERSION`].
fn is_of_release(said: &str) -> bool {
    said.split([' ', ',', '\n']).any(|word| word.strip_prefix('V') == Some(VERSION))
}

fn wheel_in(folder: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    paths.find(is_wheel).ok_or_else(|| "the download holds no wheel".to_owned())
}

fn make_executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, permissions).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_of_another_release_is_none() {
        let said = |version: &str| {
            format!(
                "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.5, V{version}\nBuild cuda\n"
            )
        };
        assert!(is_of_release(&said(VERSION)));
        assert!(!is_of_release(&said("12.8.93")) && !is_of_release(&said(&format!("{VERSION}0"))));
    }
}
