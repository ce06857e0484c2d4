//! Which file a module is in, by the rules of Rust's reference: next to the file that names it where that is a crate's root,
//! a `mod.rs` or one that `#[path]` names; else in the folder with that file's name.

use std::path::{Path, PathBuf};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// A file, or a module that stands in one, as what names further files.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The folder of the file itself.
    folder: PathBuf,
    /// The folder of the modules that it names.
    modules: PathBuf,
    /// Whether it is a module inside of a file's, whose paths are relative to the folder of its modules.
    is_inline: bool,
}

impl Files {
    /// A file whose modules stand next to it.
    pub(super) fn beside(file: &Path) -> Files {
        let folder = folder_of(file);
        Files { modules: folder.clone(), folder, is_inline: false }
    }

    /// A file whose modules stand in the folder of its name.
    fn below(file: &Path) -> Files {
        let folder = folder_of(file);
        Files { modules: folder.join(file.file_stem().unwrap_or_default()), folder, is_inline: false }
    }

    /// What `mod name { … }` in here names files relative to.
    pub(super) fn inline(&self, name: &str, attributes: &[Attribute]) -> Files {
        let modules = match path(attributes) {
            Some(path) => self.at(&path),
            None => self.modules.join(name),
        };
        Files { folder: self.folder.clone(), modules, is_inline: true }
    }

    /// The file that `mod name;` in here names, and what that file names others relative to.
    ///
    /// # Errors
    /// The files that it would be, where there is none, which is rustc's to report.
    pub(super) fn module(
        &self,
        name: &str,
        attributes: &[Attribute],
    ) -> Result<(PathBuf, Files), Vec<PathBuf>> {
        if let Some(path) = path(attributes) {
            let file = self.at(&path);
            let files = Files::beside(&file);
            return if file.is_file() { Ok((file, files)) } else { Err(vec![file]) };
        }
        let flat = self.modules.join(format!("{name}.rs"));
        let nested = self.modules.join(name).join("mod.rs");
        let files = [Files::below(&flat), Files::beside(&nested)];
        let found = [flat.clone(), nested.clone()].into_iter().zip(files).find(|(file, _)| file.is_file());
        found.ok_or_else(|| vec![flat, nested])
    }

    /// The file that `include!` in here names.
    pub(super) fn included(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    fn at(&self, path: &str) -> PathBuf {
        if self.is_inline { self.modules.join(path) } else { self.folder.join(path) }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).to_owned()
}

/// The value of `#[path = "…"]`.
fn path(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}
