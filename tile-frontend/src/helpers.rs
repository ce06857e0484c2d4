//! What a kernel sees besides its own text: functions with `#[tile_fn]`, and `const` items.

use std::collections::HashMap;
use std::rc::Rc;
use syn::{Attribute, Item, ItemConst, ItemFn, Macro, Path};

/// A function that kernels call.
#[derive(Clone, Debug)]
pub(crate) struct Helper {
    pub(crate) function: ItemFn,
    /// Whether it stands in another file than the kernel, whose lines mean nothing in the kernel's.
    pub(crate) foreign: bool,
    /// What the function itself sees, where that isn't what its caller does.
    pub(crate) own: Option<Rc<Helpers>>,
}

/// Functions and constants by the path that a kernel names them by.
#[derive(Clone, Debug, Default)]
pub struct Helpers {
    functions: HashMap<String, Helper>,
    constants: HashMap<String, ItemConst>,
}

impl Helpers {
    /// The `#[tile_fn]` functions and the constants among the items of a module.
    pub fn of(items: &[Item]) -> Helpers {
        let mut helpers = Helpers::default();
        for item in items {
            match item {
                Item::Fn(function) if function.attrs.iter().any(is_function) => {
                    let helper = Helper { function: function.clone(), foreign: false, own: None };
                    helpers.functions.insert(function.sig.ident.to_string(), helper);
                }
                Item::Const(item) => drop(helpers.constants.insert(item.ident.to_string(), item.clone())),
                _ => {}
            }
        }
        helpers
    }

    /// Adds a function of another module under the path that the kernel calls it by, with what it sees itself;
    /// `foreign` where it stands in another file.
    pub fn insert(&mut self, path: String, function: ItemFn, own: Helpers, foreign: bool) {
        self.functions.insert(path, Helper { function, foreign, own: Some(Rc::new(own)) });
    }

    pub(crate) fn function(&self, path: &Path) -> Option<&Helper> {
        self.functions.get(&path_text(path))
    }

    pub(crate) fn constant(&self, name: &str) -> Option<&ItemConst> {
        self.constants.get(name)
    }
}

/// A path as [`Helpers`] knows it: without generic arguments and `self::`.
pub fn path_text(path: &Path) -> String {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let names = match names.split_first() {
        Some((first, rest)) if first == "self" && !rest.is_empty() => rest.to_vec(),
        _ => names,
    };
    names.join("::")
}

/// Whether a path has the form of a free function's: no type is in it.
pub(crate) fn is_free(path: &Path) -> bool {
    let names = path.segments.iter().map(|segment| segment.ident.to_string());
    names.into_iter().all(|name| {
        let is_lower = name.starts_with(|c: char| c.is_lowercase() || c == '_');
        is_lower && tile_ir::DType::from_rust_name(&name).is_none()
    })
}

/// A path without generic arguments.
pub(crate) fn plain(path: &Path) -> Path {
    let mut path = path.clone();
    path.segments.iter_mut().for_each(|segment| segment.arguments = syn::PathArguments::None);
    path
}

/// `#[tile_fn]` or `#[tile::tile_fn]`.
pub fn is_function(attribute: &Attribute) -> bool {
    is_named(attribute, "tile_fn")
}

/// `#[tile_kernel]` or `#[tile::tile_kernel]`.
pub fn is_kernel(attribute: &Attribute) -> bool {
    is_named(attribute, "tile_kernel")
}

/// `#[tile_kernels]` or `#[tile::tile_kernels]`.
pub fn is_module(attribute: &Attribute) -> bool {
    is_named(attribute, "tile_kernels")
}

/// `tile::kernels! { … }` around the items of a file.
pub fn is_module_of_file(called: &Macro) -> bool {
    let names: Vec<String> = called.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names == ["tile", "kernels"] || names == ["kernels"]
}

fn is_named(attribute: &Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
}
