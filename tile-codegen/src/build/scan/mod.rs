//! Finds the kernels of a package that have instances, those that name some and those without parameters, and the functions
//! that they call, as rustc finds them.

mod condition;
mod crates;
mod files;
mod names;
mod read;
#[cfg(test)]
mod tests;
mod tree;

use super::cargo::{Cargo, Package, Target};
pub(super) use condition::Conditions;
use crates::Crates;
use names::Failure;
use proc_macro2::TokenStream;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use syn::Meta;
use tile_frontend::{Diagnostics, Helpers, Lowered, called_elsewhere, path_text};
use tile_ir::{Bindings, VerifiedKernel, text};
use tree::{FunctionId, Kernel, ScopeId, Segments, Tree};

/// A kernel with at least one instance. Kernels of one name and meaning that stand in several places are one, with
/// the instances of all: the macro finds code by name and meaning.
pub(super) struct Found {
    pub(super) kernel: VerifiedKernel,
    pub(super) instances: Vec<Bindings>,
    /// Whether every one of these kernels allows slow products.
    pub(super) allows_slow_products: bool,
    /// `src/main.rs:12`, for messages.
    pub(super) place: String,
    /// The folder of what people read of it: its name, and where it stands if others have that name.
    pub(super) folder: String,
}

impl Found {
    fn is(&self, kernel: &VerifiedKernel) -> bool {
        self.kernel.name == kernel.name && text::fingerprint(&self.kernel) == text::fingerprint(kernel)
    }
}

/// What a package's sources hold.
#[derive(Default)]
pub(super) struct Scanned {
    /// Kernels with instances, in order of file and line.
    pub(super) found: Vec<Found>,
    /// How many kernels the front end refuses.
    pub(super) refused: usize,
    /// Kernels with instances whose functions weren't found, each as a warning.
    pub(super) skipped: Vec<String>,
    /// The files that all of this depends on.
    pub(super) files: Vec<PathBuf>,
    /// Whether a kernel may be found once cargo has what it lacks now.
    pub(super) lacks_packages: bool,
}

impl Scanned {
    fn add(&mut self, lowered: Lowered, place: String) {
        let Lowered { kernel, instances, allows_slow_products, .. } = lowered;
        match self.found.iter_mut().find(|found| found.is(&kernel)) {
            Some(same) => {
                let new = |bindings: &Bindings| !same.instances.contains(bindings);
                let new: Vec<Bindings> = instances.into_iter().filter(new).collect();
                same.instances.extend(new);
                same.allows_slow_products &= allows_slow_products;
            }
            None => self.found.push(Found {
                kernel,
                instances,
                allows_slow_products,
                place,
                folder: String::new(),
            }),
        }
    }
}

/// The kernels of some crates of a package.
///
/// A kernel that the front end refuses is left out: the attribute macro refuses it too, and reports each
/// mistake at its token, which an error of the build script would hide.
///
/// # Errors
/// Where a crate's root can't be read.
pub(super) fn kernels(
    cargo: &Cargo,
    package: &Package,
    conditions: &Conditions,
    roots: &[&Target],
) -> Result<Scanned, String> {
    let mut crates = Crates::read(cargo, package, conditions, roots)?;
    let mut kernels = std::mem::take(&mut crates.tree.kernels);
    kernels.sort_by(|a, b| a.place.cmp(&b.place));
    let mut scanned = Scanned::default();
    for kernel in &kernels {
        let mut search = Search { crates: &mut crates, kernel, failures: HashMap::new() };
        match search.kernel() {
            None => {}
            Some(Ok(lowered)) if lowered.instances.is_empty() => {}
            Some(Ok(lowered)) => scanned.add(lowered, kernel.place.to_string()),
            Some(Err(errors)) => {
                scanned.refused += 1;
                scanned.skipped.extend(search.warning(&errors));
                scanned.lacks_packages |= search.lacks_packages(&errors);
            }
        }
    }
    scanned.skipped.extend(crates.tree.makers.iter().map(|maker| {
        format!(
            "{}: kernels that `{}!` makes aren't compiled ahead of time, because a build script reads functions as they \
             stand in files; feature `jit` compiles them at run time",
            maker.place, maker.name
        )
    }));
    scanned.skipped.extend(crates.tree.unread.iter().map(|place| {
        format!(
            "{place}: what this `include!` brings isn't read, because a build script knows literals, `OUT_DIR` and \
             `CARGO_MANIFEST_DIR` alone; kernels in it aren't compiled ahead of time, and feature `jit` compiles them at run time"
        )
    }));
    // What two programs have in common is read for each.
    let mut known = HashSet::new();
    scanned.skipped.retain(|warning| known.insert(warning.clone()));
    scanned.files = crates.tree.files.into_iter().chain(crates.manifests).collect();
    name_folders(&mut scanned.found);
    Ok(scanned)
}

fn name_folders(found: &mut [Found]) {
    let mut with_name: HashMap<String, usize> = HashMap::new();
    for kernel in found.iter() {
        *with_name.entry(kernel.kernel.name.clone()).or_default() += 1;
    }
    for kernel in found {
        let name = &kernel.kernel.name;
        kernel.folder = match with_name[name] {
            1 => name.clone(),
            _ => format!("{name}-{}", kernel.place.replace(['/', '\\', ':'], "-")),
        };
    }
}

/// Looks for the functions that a kernel calls. The macro finds them by rustc's paths, and so by the same rules.
struct Search<'c, 'p> {
    crates: &'c mut Crates<'p>,
    kernel: &'c Kernel,
    /// Why functions weren't found, by the paths that they are called by, and by which function where that isn't the kernel.
    failures: HashMap<String, (Option<FunctionId>, Failure)>,
}

impl Search<'_, '_> {
    /// The kernel with what it calls; `None` of one that has no instances.
    fn kernel(&mut self) -> Option<Result<Lowered, Diagnostics>> {
        let Kernel { attribute, item, scope, seen, place } = self.kernel;
        let options = match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            // Without parameters it is one instance, and with them there is nothing to compile ahead of time.
            Meta::Path(_) if item.sig.generics.params.is_empty() => TokenStream::new(),
            Meta::Path(_) | Meta::NameValue(_) => return None,
        };
        let mut helpers = seen.clone();
        let mut known = Vec::new();
        loop {
            let lowered = tile_frontend::lower_with(options.clone(), item.clone(), &helpers, &place.file);
            let Err(errors) = &lowered else { return Some(lowered) };
            let before = known.len();
            for path in errors.missing() {
                let text = path_text(path);
                if known.contains(&text) {
                    continue;
                }
                if let Some(function) = self.function(None, *scope, path) {
                    self.insert(&mut helpers, text.clone(), function, &mut vec![function]);
                    known.push(text);
                }
            }
            if known.len() == before {
                return Some(lowered);
            }
        }
    }

    /// The function that a path means in a function, or in the kernel.
    fn function(
        &mut self,
        caller: Option<FunctionId>,
        scope: ScopeId,
        path: &syn::Path,
    ) -> Option<FunctionId> {
        match names::function(self.crates, scope, &Segments::of(path)) {
            Ok(function) => Some(function),
            Err(failure) => {
                self.failures.insert(path_text(path), (caller, failure));
                None
            }
        }
    }

    /// Adds a function under a path, with what it sees and the functions of other modules that it calls. `around` are
    /// those whose calls lead to it, and itself: functions that call each other in a circle are refused.
    fn insert(&mut self, helpers: &mut Helpers, path: String, id: FunctionId, around: &mut Vec<FunctionId>) {
        let function = self.crates.tree.function(id);
        let (item, scope, mut own) = (function.item.clone(), function.scope, function.seen.clone());
        let is_foreign = function.place.file != self.kernel.place.file;
        for path in called_elsewhere(&item, &own) {
            let Some(called) = self.function(Some(id), scope, &path) else { continue };
            if around.contains(&called) {
                continue;
            }
            around.push(called);
            self.insert(&mut own, path_text(&path), called, around);
            around.pop();
        }
        helpers.insert(path, item, own, is_foreign);
    }

    /// The functions that the kernel lacks, by their paths, with why they weren't found.
    fn missing<'e>(&self, errors: &'e Diagnostics) -> Vec<(&'e syn::Path, &(Option<FunctionId>, Failure))> {
        let missing = errors.unknown().into_iter();
        missing.filter_map(|path| Some((path, self.failures.get(&path_text(path))?))).collect()
    }

    /// Whether the kernel may be compiled once cargo has a package that it lacks now.
    fn lacks_packages(&self, errors: &Diagnostics) -> bool {
        self.missing(errors).iter().any(|(_, (_, failure))| matches!(failure, Failure::Unread(_)))
    }

    /// Says of which functions the kernel has no code because they weren't found.
    fn warning(&self, errors: &Diagnostics) -> Option<String> {
        let missing = self.missing(errors).into_iter();
        let mut reasons: Vec<String> = missing.map(|(path, failure)| self.reason(path, failure)).collect();
        reasons.dedup();
        if reasons.is_empty() {
            return None;
        }
        Some(format!(
            "{}: kernel `{}` isn't compiled ahead of time: {}; feature `jit` compiles it at run time",
            self.kernel.place,
            self.kernel.item.sig.ident,
            reasons.join("; ")
        ))
    }

    fn reason(&self, path: &syn::Path, (caller, failure): &(Option<FunctionId>, Failure)) -> String {
        let tree = &self.crates.tree;
        let by = caller.map(|caller| format!(", which {} calls,", tree.title(caller))).unwrap_or_default();
        let name = format!("`{}`{by}", path_text(path));
        let last = || path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        match failure {
            Failure::Unread(unread) => format!(
                "{name} leads to crate `{}`, which the build script can't read ({}); `cargo fetch --manifest-path {}` \
                 brings what is missing",
                unread.name,
                unread.reason,
                self.crates.manifest().display()
            ),
            Failure::Ambiguous(candidates) if !candidates.is_empty() => {
                let candidates = titles(tree, candidates.iter().copied());
                format!("{name} may be any of {candidates}; call one by its path")
            }
            Failure::Ambiguous(_) => {
                format!(
                    "{name} may be in any of several modules of one name, and a build script can't decide their `cfg`"
                )
            }
            Failure::Missing(brought) => {
                let (name, last) = match brought {
                    Some(path) => {
                        let by = path.names.join("::");
                        let last = path.names.last().cloned().unwrap_or_default();
                        (format!("{name}, which `use` brings as `{by}`,"), last)
                    }
                    None => (name, last()),
                };
                match titles(tree, tree.named(&last)) {
                    none if none.is_empty() => format!(
                        "{name} is no `#[tile_fn]` function in the files that were read (one that a macro makes isn't seen)"
                    ),
                    candidates => {
                        format!(
                            "{name} leads to no `#[tile_fn]` function; those of this name are {candidates}"
                        )
                    }
                }
            }
        }
    }
}

/// Functions with their places, in the order of these.
fn titles(tree: &Tree, functions: impl Iterator<Item = FunctionId>) -> String {
    let mut functions: Vec<FunctionId> = functions.collect();
    functions.sort_by_key(|&function| &tree.function(function).place);
    let mut titles: Vec<String> = functions.into_iter().map(|function| tree.title(function)).collect();
    // What two programs have in common is read for each.
    titles.dedup();
    titles.join(", ")
}
