//! What a kernel sees besides its own text: functions with `#[tile_fn]`, `const` items, and structs.

use crate::conditional;
use crate::methods::{Methods, Owner};
use crate::updates;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use syn::{Attribute, Item, ItemConst, ItemFn, ItemImpl, ItemStruct, Macro, Path, Signature, Type};

/// A function that kernels call.
#[derive(Clone, Debug)]
pub(crate) struct Helper {
    pub(crate) function: ItemFn,
    /// Whether it is a method that takes `&mut self`.
    pub(crate) is_update: bool,
    /// Whether it stands in another file than the kernel, whose lines mean nothing in the kernel's.
    pub(crate) foreign: bool,
    /// What the function itself sees, where that isn't what its caller does.
    pub(crate) own: Option<Rc<Helpers>>,
    /// What it is a function of, where it is one of a type.
    pub(crate) owner: Option<Owner>,
}

/// Functions and constants by the path that a kernel names them by.
#[derive(Clone, Debug, Default)]
pub struct Helpers {
    functions: HashMap<String, Helper>,
    /// The names of methods that take `&mut self`.
    updates: HashSet<String>,
    constants: HashMap<String, ItemConst>,
    structs: HashMap<String, ItemStruct>,
    /// Those that constants call, each a `const fn` that is Rust's alone.
    const_functions: HashMap<String, Rc<ItemFn>>,
}

impl Helper {
    /// The same function as it is called from another module: it sees its own, and may stand in another file.
    pub(crate) fn called_from_elsewhere(self, module: Rc<Helpers>, foreign: bool) -> Helper {
        let own = self.own.or(Some(module));
        Helper { own, foreign: self.foreign || foreign, ..self }
    }
}

impl Helpers {
    /// The `#[tile_fn]` functions, those of types too, the constants with the `const fn`s that they call, and the structs among
    /// the items of a module.
    pub fn of(items: &[Item]) -> Helpers {
        let mut helpers = Helpers::default();
        for item in items {
            match item {
                Item::Fn(function) if function.attrs.iter().any(is_function) => {
                    let helper = Helper {
                        function: function.clone(),
                        is_update: false,
                        foreign: false,
                        own: None,
                        owner: None,
                    };
                    helpers.functions.insert(function.sig.ident.to_string(), helper);
                }
                Item::Fn(function) if is_const(function) => {
                    helpers.const_functions.insert(function.sig.ident.to_string(), Rc::new(function.clone()));
                }
                Item::Const(item) => drop(helpers.constants.insert(item.ident.to_string(), item.clone())),
                // Of one with a condition another may be what rustc sees.
                Item::Struct(item) if conditional::on_item(&item.attrs).is_none() => {
                    helpers.structs.insert(item.ident.to_string(), item.clone());
                }
                Item::Impl(item) if item.attrs.iter().any(is_function) => helpers.add_methods(item),
                _ => {}
            }
        }
        helpers.write_out_updates();
        helpers
    }

    /// Writes out the calls of methods that change their struct in all functions, each of which sees all methods.
    fn write_out_updates(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        for helper in functions.values_mut() {
            updates::write_out(&mut helper.function, helper.is_update, self);
        }
        self.functions = functions;
    }

    /// Whether there is a method that takes `&mut self`.
    pub(crate) fn has_updates(&self) -> bool {
        !self.updates.is_empty()
    }

    /// Whether there is one of this name.
    pub(crate) fn has_update(&self, name: &str) -> bool {
        self.updates.contains(name)
    }

    /// Adds a function of another module under the path that the kernel calls it by, with what it sees itself;
    /// `foreign` where it stands in another file.
    pub fn insert(&mut self, path: String, mut function: ItemFn, own: Helpers, foreign: bool) {
        updates::write_out(&mut function, false, &own);
        let own = Some(Rc::new(own));
        self.functions.insert(path, Helper { function, is_update: false, foreign, own, owner: None });
    }

    /// Adds the functions and constants of a type, as those of paths through its name.
    fn add_methods(&mut self, item: &ItemImpl) {
        let Some(methods) = Methods::of(item) else { return };
        let updates = methods.signatures().filter(|signature| updates::is_update(signature));
        self.updates.extend(updates.map(|signature| signature.ident.to_string()));
        let are_updates = methods.signatures().map(updates::is_update);
        for (function, is_update) in methods.functions().zip(are_updates) {
            let path = format!("{}::{}", methods.owner, function.sig.ident);
            let owner = Some(methods.of_functions());
            let helper = Helper { function, is_update, foreign: false, own: None, owner };
            if let Some(whole) = methods.path() {
                self.functions.insert(format!("{whole}::{}", helper.function.sig.ident), helper.clone());
                self.functions.entry(path).or_insert(helper);
            } else {
                self.functions.insert(path, helper);
            }
        }
        for constant in methods.constants() {
            self.constants.insert(format!("{}::{}", methods.owner, constant.ident), constant);
        }
    }

    /// The functions of types that a method's name may mean.
    pub(crate) fn methods<'h>(&'h self, name: &'h str) -> impl Iterator<Item = (&'h str, &'h Helper)> {
        let methods = self.functions.iter().filter(move |(path, _)| {
            path.rsplit_once("::")
                .is_some_and(|(owner, last)| last == name && owner.starts_with(char::is_uppercase))
        });
        methods.map(|(path, helper)| (path.as_str(), helper))
    }

    /// The functions of a type, in quotes.
    pub(crate) fn methods_of(&self, owner: &str) -> Vec<String> {
        let of_owner = |path: &String| {
            path.rsplit_once("::").filter(|(of, _)| *of == owner).map(|(_, name)| format!("`{name}`"))
        };
        let mut names: Vec<String> = self.functions.keys().filter_map(of_owner).collect();
        names.sort();
        names
    }

    pub(crate) fn function(&self, path: &Path) -> Option<&Helper> {
        self.functions.get(&path_text(path))
    }

    /// The function of a type, which a path names.
    pub(crate) fn method(&self, owner: &str, name: &str) -> Option<&Helper> {
        self.functions.get(&format!("{owner}::{name}"))
    }

    /// The struct at a path, if it is one of the module.
    pub(crate) fn structure(&self, path: &Path) -> Option<&ItemStruct> {
        self.structs.get(&path_text(path))
    }

    pub(crate) fn constant(&self, name: &str) -> Option<&ItemConst> {
        self.constants.get(name)
    }

    /// The `const fn` at a path.
    pub(crate) fn const_function(&self, path: &Path) -> Option<&Rc<ItemFn>> {
        self.const_functions.get(&path_text(path))
    }

    pub(crate) fn constants(&self) -> impl Iterator<Item = &ItemConst> {
        self.constants.values()
    }

    pub(crate) fn signatures(&self) -> impl Iterator<Item = &Signature> {
        self.functions.values().map(|helper| &helper.function.sig)
    }

    /// The fields of all structs, by their names or numbers, and their types.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, &Type)> {
        self.structs.values().flat_map(|item| {
            item.fields.iter().enumerate().map(|(at, field)| {
                let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
                (name, &field.ty)
            })
        })
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

/// Whether a function is a `const fn` of Rust, which constants call.
pub fn is_const(function: &ItemFn) -> bool {
    let of_kernels = |attribute| is_function(attribute) || is_kernel(attribute);
    function.sig.constness.is_some() && !function.attrs.iter().any(of_kernels)
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
