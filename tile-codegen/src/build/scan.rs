//! Finds the kernels of a crate's sources that name instances.

use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, Meta};
use tile_ir::{Bindings, VerifiedKernel};

/// A kernel with at least one instance.
pub(super) struct Found {
    pub(super) kernel: VerifiedKernel,
    pub(super) instances: Vec<Bindings>,
    /// `src/main.rs:12`, for messages.
    pub(super) place: String,
}

/// The kernels under a folder of a package. All errors are collected into one text.
pub(super) fn kernels(package: &Path, folder: &Path) -> Result<Vec<Found>, String> {
    let mut files = Vec::new();
    collect(&package.join(folder), &mut files)?;
    files.sort();
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.strip_prefix(package).unwrap_or(&file).display().to_string();
        let source = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        // A file that rustc can't parse either is rustc's to report.
        let Ok(syntax) = syn::parse_file(&source) else { continue };
        let mut scan = Scan { file: &name, found: Vec::new(), errors: Vec::new() };
        scan.visit_file(&syntax);
        found.extend(scan.found);
        errors.extend(scan.errors);
    }
    if errors.is_empty() { Ok(found) } else { Err(errors.join("\n")) }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

struct Scan<'f> {
    file: &'f str,
    found: Vec<Found>,
    errors: Vec<String>,
}

impl<'ast> Visit<'ast> for Scan<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if let Some(attribute) = function.attrs.iter().find(|attribute| is_kernel(attribute)) {
            self.kernel(attribute, function);
        }
        visit::visit_item_fn(self, function);
    }
}

/// `#[tile_kernel]` or `#[tile::tile_kernel]`.
fn is_kernel(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "tile_kernel")
}

impl Scan<'_> {
    fn kernel(&mut self, attribute: &Attribute, function: &ItemFn) {
        let options = match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            // Without options there is nothing to compile ahead of time; the macro checks the kernel.
            Meta::Path(_) | Meta::NameValue(_) => return,
        };
        let mut function = function.clone();
        function.attrs.retain(|attribute| !is_kernel(attribute));
        let line = function.sig.ident.span().start().line;
        match tile_frontend::lower(options, function, self.file) {
            Ok(lowered) if lowered.instances.is_empty() => {}
            Ok(lowered) => self.found.push(Found {
                kernel: lowered.kernel,
                instances: lowered.instances,
                place: format!("{}:{line}", self.file),
            }),
            Err(errors) => {
                self.errors.extend(errors.iter().map(|error| format!("{}:{error}", self.file)));
            }
        }
    }
}
