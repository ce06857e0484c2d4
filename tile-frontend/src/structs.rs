//! Which struct a value is of, as far as its methods ask. The definition of a struct is seen in its own module alone, and two
//! modules may each have one of the same name.
//!
//! What is seen are the paths that name a value's struct: where the value is made, and where its type is declared. In the
//! module in which such a path stands it means this struct, so the functions of a type of that path there are its methods.

use crate::helpers::{Helper, Helpers, path_text};
use crate::text::Text;
use std::fmt;
use std::rc::Rc;
use syn::Path;

/// The struct that a value is of: the paths that are known to name it, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Struct(Rc<Vec<Name>>);

/// A path that names a struct.
#[derive(Clone, Debug)]
struct Name {
    path: String,
    /// What the text that it stands in sees of its module.
    module: Rc<Helpers>,
    /// Whether that text stands in another file than the kernel.
    is_foreign: bool,
}

impl Name {
    fn of(path: &Path, text: &Text) -> Name {
        Name { path: path_text(path), module: Rc::clone(&text.helpers), is_foreign: text.is_foreign }
    }
}

/// The function that a method is, and where it was found.
pub(crate) struct Method {
    pub(crate) helper: Helper,
    /// What it sees itself.
    pub(crate) module: Rc<Helpers>,
    /// Whether it stands in another file than the kernel.
    pub(crate) is_foreign: bool,
}

impl Struct {
    /// The struct that a path in this text names.
    pub(crate) fn named(path: &Path, text: &Text) -> Struct {
        Struct(Rc::new(vec![Name::of(path, text)]))
    }

    /// The same struct, which a path in this text names too.
    pub(crate) fn also_named(&self, path: &Path, text: &Text) -> Struct {
        let name = Name::of(path, text);
        let is_same = |known: &Name| known.path == name.path && Rc::ptr_eq(&known.module, &name.module);
        if self.0.iter().any(is_same) {
            return self.clone();
        }
        Struct(Rc::new(self.0.iter().cloned().chain([name]).collect()))
    }

    /// The method of this name, if a module in which the struct has a name is seen to have it.
    pub(crate) fn method(&self, name: &str) -> Option<Method> {
        self.0.iter().find_map(|Name { path, module, is_foreign }| {
            let helper = module.method(path, name)?.clone();
            Some(Method { helper, module: Rc::clone(module), is_foreign: *is_foreign })
        })
    }

    /// The names of its methods, in quotes.
    pub(crate) fn methods(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.iter().flat_map(|name| name.module.methods_of(&name.path)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether the struct is of another module by all that is known.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.iter().all(|name| name.path.contains("::"))
    }
}

/// The name without the modules before it.
impl fmt::Display for Struct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.first().map_or("", |name| &name.path);
        f.write_str(path.rsplit("::").next().unwrap_or(path))
    }
}
