//! Finds the kernels of a crate's sources that have instances: those that name some, and those without parameters.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemMacro, ItemMod, Meta};
use tile_frontend::{
    Diagnostics, Helpers, Lowered, called_elsewhere, is_function, is_kernel, is_module, is_module_of_file,
    path_text,
};
use tile_ir::{Bindings, VerifiedKernel, text};

/// A kernel with at least one instance. Kernels of one name and meaning that stand in several places are one, with
/// the instances of all: the macro finds code by name and meaning.
pub(super) struct Found {
    pub(super) kernel: VerifiedKernel,
    pub(super) instances: Vec<Bindings>,
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
}

impl Scanned {
    fn add(&mut self, lowered: Lowered, place: String) {
        let Lowered { kernel, instances, .. } = lowered;
        match self.found.iter_mut().find(|found| found.is(&kernel)) {
            Some(same) => {
                let new = |bindings: &Bindings| !same.instances.contains(bindings);
                let new: Vec<Bindings> = instances.into_iter().filter(new).collect();
                same.instances.extend(new);
            }
            None => self.found.push(Found { kernel, instances, place, folder: String::new() }),
        }
    }
}

/// The kernels under a folder of a package.
///
/// A kernel that the front end refuses is left out: the attribute macro refuses it too, and reports each
/// mistake at its token, which an error of the build script would hide.
pub(super) fn kernels(package: &Path, folder: &Path) -> Result<Scanned, String> {
    let mut files = Vec::new();
    collect(&package.join(folder), &mut files)?;
    files.sort();
    let (mut sources, mut elsewhere) = (Vec::new(), Functions::default());
    for file in files {
        let name = file.strip_prefix(package).unwrap_or(&file).display().to_string();
        let source = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        // A file that rustc can't parse either is rustc's to report.
        let Ok(syntax) = syn::parse_file(&source) else { continue };
        elsewhere.visit_file(&syntax);
        sources.push((name, syntax));
    }
    let mut scanned = Scanned::default();
    for (name, syntax) in &sources {
        Scan { file: name, helpers: Helpers::default(), elsewhere: &elsewhere.0, scanned: &mut scanned }
            .visit_file(syntax);
    }
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

/// Functions by name, each with what its module lets it see.
type Elsewhere = HashMap<String, Vec<(ItemFn, Helpers)>>;

/// Finds the functions of kernels.
#[derive(Default)]
struct Functions(Elsewhere, Helpers);

impl Visit<'_> for Functions {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        let outer = std::mem::replace(&mut self.1, seen_in(module));
        visit::visit_item_mod(self, module);
        self.1 = outer;
    }

    fn visit_item_macro(&mut self, called: &ItemMacro) {
        let Some(file) = module_of_file(called) else { return };
        let outer = std::mem::replace(&mut self.1, Helpers::of(&file.items));
        self.visit_file(&file);
        self.1 = outer;
    }

    fn visit_item_fn(&mut self, function: &ItemFn) {
        if function.attrs.iter().any(is_function) {
            let name = function.sig.ident.to_string();
            self.0.entry(name).or_default().push((function.clone(), self.1.clone()));
        }
        visit::visit_item_fn(self, function);
    }
}

/// What the kernels and functions of a module see of it.
fn seen_in(module: &ItemMod) -> Helpers {
    match &module.content {
        Some((_, items)) if module.attrs.iter().any(is_module) => Helpers::of(items),
        _ => Helpers::default(),
    }
}

/// Whether a macro's definition has kernels in it.
fn makes_kernels(called: &ItemMacro) -> bool {
    fn names_attribute(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "tile_kernel",
            TokenTree::Group(group) => names_attribute(group.stream()),
            _ => false,
        })
    }
    called.mac.path.is_ident("macro_rules") && names_attribute(called.mac.tokens.clone())
}

/// The items in `tile::kernels! { … }`.
fn module_of_file(called: &ItemMacro) -> Option<syn::File> {
    is_module_of_file(&called.mac).then(|| called.mac.parse_body().ok()).flatten()
}

struct Scan<'f> {
    file: &'f str,
    /// What the kernels of the innermost module see.
    helpers: Helpers,
    /// All functions of kernels of the package.
    elsewhere: &'f Elsewhere,
    scanned: &'f mut Scanned,
}

impl Visit<'_> for Scan<'_> {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        let outer = std::mem::replace(&mut self.helpers, seen_in(module));
        visit::visit_item_mod(self, module);
        self.helpers = outer;
    }

    fn visit_item_macro(&mut self, called: &ItemMacro) {
        if makes_kernels(called) {
            let name = called.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            let line = called.mac.path.span().start().line;
            self.scanned.skipped.push(format!(
                "{}:{line}: kernels that `{name}!` makes aren't compiled ahead of time, because a build script reads \
                 functions as they stand in files; feature `jit` compiles them at run time",
                self.file
            ));
        }
        let Some(file) = module_of_file(called) else { return };
        let outer = std::mem::replace(&mut self.helpers, Helpers::of(&file.items));
        self.visit_file(&file);
        self.helpers = outer;
    }

    fn visit_item_fn(&mut self, function: &ItemFn) {
        if let Some(attribute) = function.attrs.iter().find(|attribute| is_kernel(attribute)) {
            self.kernel(attribute, function);
        }
        visit::visit_item_fn(self, function);
    }
}

impl Scan<'_> {
    fn kernel(&mut self, attribute: &Attribute, function: &ItemFn) {
        let options = match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            // Without parameters it is one instance, and with them there is nothing to compile ahead of time.
            Meta::Path(_) if function.sig.generics.params.is_empty() => TokenStream::new(),
            Meta::Path(_) | Meta::NameValue(_) => return,
        };
        let mut function = function.clone();
        function.attrs.retain(|attribute| !is_kernel(attribute));
        let line = function.sig.ident.span().start().line;
        let name = function.sig.ident.to_string();
        match self.lower(&options, &function) {
            Ok(lowered) if lowered.instances.is_empty() => {}
            Ok(lowered) => self.scanned.add(lowered, format!("{}:{line}", self.file)),
            Err(errors) => {
                self.scanned.refused += 1;
                self.scanned.skipped.extend(warning(&name, &format!("{}:{line}", self.file), &errors));
            }
        }
    }
}

impl Scan<'_> {
    /// Lowers a kernel with the functions of other modules that it turns out to call. The macro finds them by
    /// rustc's paths; here the last name must say enough.
    fn lower(&self, options: &TokenStream, function: &ItemFn) -> Result<Lowered, Diagnostics> {
        let mut helpers = self.helpers.clone();
        let mut known = HashSet::new();
        loop {
            let lowered = tile_frontend::lower_with(options.clone(), function.clone(), &helpers, self.file);
            let Err(errors) = &lowered else { return lowered };
            let mut found = false;
            for path in errors.missing() {
                let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
                if let Some([(function, own)]) = self.elsewhere.get(&name).map(Vec::as_slice)
                    && known.insert(path_text(path))
                {
                    let own = self.with_called(function, own, &mut vec![name]);
                    helpers.insert(path_text(path), function.clone(), own, true);
                    found = true;
                }
            }
            if !found {
                return lowered;
            }
        }
    }
}

impl Scan<'_> {
    /// What a function sees, with the functions of other modules that it calls. `around` are the functions that call
    /// it: one that calls itself is refused when a kernel is lowered.
    fn with_called(&self, function: &ItemFn, own: &Helpers, around: &mut Vec<String>) -> Helpers {
        let mut helpers = own.clone();
        for path in called_elsewhere(function, own) {
            let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            if around.contains(&name) {
                continue;
            }
            if let Some([(called, seen)]) = self.elsewhere.get(&name).map(Vec::as_slice) {
                around.push(name);
                let seen = self.with_called(called, seen, around);
                around.pop();
                helpers.insert(path_text(&path), called.clone(), seen, true);
            }
        }
        helpers
    }
}

/// Says of which functions a kernel has no code because they weren't found.
fn warning(kernel: &str, place: &str, errors: &Diagnostics) -> Option<String> {
    let missing: Vec<String> = errors
        .iter()
        .filter_map(|error| error.missing.as_ref())
        .map(|function| format!("`{}`", path_text(function)))
        .collect();
    if missing.is_empty() {
        return None;
    }
    Some(format!(
        "{place}: kernel `{kernel}` isn't compiled ahead of time, because {} wasn't found among the package's \
         `#[tile_fn]` functions; feature `jit` compiles it at run time",
        missing.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "fn NAME<const B: usize>(y: &mut Tensor<f32, n>) { let mut y = y.partition_view_mut([B]); \
        y.store_masked(Tile::ones([B])); }";

    #[test]
    fn finds_kernels_in_modules_and_leaves_wrong_ones_to_the_macro() {
        let package = std::env::temp_dir().join(format!("tile-scan-{}", std::process::id()));
        let source = package.join("src").join("inner");
        fs::create_dir_all(&source).unwrap();
        let kernel = |attribute: &str, name: &str| format!("{attribute}\n{}\n", KERNEL.replace("NAME", name));
        let text = [
            format!("mod m {{ {} }}", kernel("#[tile::tile_kernel(instances(B = 4; B = 8))]", "nested")),
            kernel("#[tile_kernel]", "without_instances"),
            kernel("#[tile_kernel]", "without_parameters")
                .replace("<const B: usize>", "")
                .replace("[B]", "[8]"),
            kernel("#[tile_kernel(instances(B = 0))]", "refused"),
            kernel("#[inline]", "no_kernel"),
            format!(
                "#[tile_kernels] mod helped {{ const SIZE: usize = 4; #[tile_fn] fn one<const B: usize>() -> \
                 Tile<f32, 1> {{ Tile::ones([B + 0 * SIZE]) }} #[tile_fn] fn with(x: Tile<f32, 1>, f: impl \
                 Fn(Tile<f32, 1>) -> Tile<f32, 1>) -> Tile<f32, 1> {{ f(x) * SIZE as f32 }} {} }}\n",
                kernel("#[tile_kernel(instances(B = 4))]", "calling")
                    .replace("Tile::ones([B])", "one::<B>()")
            ),
            kernel("#[tile_kernel(instances(B = 4))]", "lost").replace("Tile::ones([B])", "two::<B>()"),
            kernel("#[tile_kernel(instances(B = 4))]", "across")
                .replace("Tile::ones([B])", "helped::one::<B>()"),
            kernel("#[tile_kernel(instances(B = 4))]", "given")
                .replace("Tile::ones([B])", "helped::with(Tile::ones([B]), |t| two_calls(t) + 1.0)"),
            "macro_rules! doubled { ($name:ident) => { #[tile_kernel(instances(B = 4))] fn $name() {} } }\n"
                .to_owned(),
            "#[tile_fn] fn two_calls(x: Tile<f32, 1>) -> Tile<f32, 1> { super::of_file(x) }\n".to_owned(),
        ];
        let file = format!(
            "tile::kernels! {{ const ONE: f32 = 1.0; #[tile_fn] fn of_file(x: Tile<f32, 1>) -> Tile<f32, 1> {{ x + ONE }} {} }}\n",
            kernel("#[tile_kernel(instances(B = 4))]", "in_file")
                .replace("Tile::ones([B])", "of_file(m::two_calls(Tile::ones([B])))")
        );
        fs::write(source.join("module.rs"), file).unwrap();
        fs::write(source.join("kernels.rs"), text.concat()).unwrap();
        fs::write(package.join("src").join("broken.rs"), "fn {").unwrap();
        let scanned = kernels(&package, Path::new("src")).unwrap();
        fs::remove_dir_all(&package).unwrap();
        let names: Vec<_> =
            scanned.found.iter().map(|found| (found.kernel.name.as_str(), found.instances.len())).collect();
        assert_eq!(
            (names, scanned.refused),
            (
                vec![
                    ("nested", 2),
                    ("without_parameters", 1),
                    ("calling", 1),
                    ("across", 1),
                    ("given", 1),
                    ("in_file", 1)
                ],
                2
            )
        );
        let [warning, made] = &scanned.skipped[..] else { panic!("{:?}", scanned.skipped) };
        assert!(made.contains("kernels that `doubled!` makes"), "{made}");
        assert!(warning.contains("kernel `lost`") && warning.contains("`two` wasn't found"), "{warning}");
        assert!(scanned.found[0].place.ends_with("kernels.rs:2"), "{}", scanned.found[0].place);
    }

    #[test]
    fn kernels_of_one_name_share_code_where_they_mean_the_same() {
        let package = std::env::temp_dir().join(format!("tile-scan-names-{}", std::process::id()));
        let source = package.join("src");
        fs::create_dir_all(&source).unwrap();
        let module = |module: &str, instances: &str, filled: &str| {
            let kernel = KERNEL.replace("NAME", "fill").replace("ones", filled);
            format!("mod {module} {{ #[tile_kernel(instances({instances}))] {kernel} }}\n")
        };
        let text = [
            module("first", "B = 4", "ones"),
            module("same", "B = 4 | 8", "ones"),
            module("other", "B = 4", "zeros"),
        ];
        fs::write(source.join("kernels.rs"), text.concat()).unwrap();
        let scanned = kernels(&package, Path::new("src")).unwrap();
        fs::remove_dir_all(&package).unwrap();
        let found = scanned.found.iter();
        let found: Vec<_> = found.map(|found| (found.folder.as_str(), found.instances.len())).collect();
        assert_eq!(found, [("fill-src-kernels.rs-1", 2), ("fill-src-kernels.rs-3", 1)]);
    }
}
