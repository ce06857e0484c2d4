//! What was read of crates: their modules, and in these the functions, the kernels and the names that `use` brings.
//! Nothing here says what a path means: `names` does.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use syn::{Attribute, ItemFn};
use tile_frontend::Helpers;

/// A crate, by its number in [`Tree::crates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CrateId(pub(super) usize);

/// A module, or a block with items, by its number in [`Tree::scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(pub(super) usize);

/// A function of kernels, by its number in [`Tree::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FunctionId(pub(super) usize);

/// Crates whose files were read.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) crates: Vec<Crate>,
    pub(super) scopes: Vec<Scope>,
    pub(super) functions: Vec<Function>,
    pub(super) kernels: Vec<Kernel>,
    /// Macros that make kernels.
    pub(super) makers: Vec<Maker>,
    /// Where `include!` names a file by what only rustc knows.
    pub(super) unread: Vec<Place>,
    /// Every file that was read, and those that rustc needs and that aren't there, but for what the build script writes.
    pub(super) files: BTreeSet<PathBuf>,
}

/// A library or a program.
pub(super) struct Crate {
    /// The package that it is of, as cargo names it; `None` for the one that is built.
    pub(super) package: Option<String>,
    /// What stands before the paths of its items in messages: `crate`, or the name of another crate.
    pub(super) name: String,
    /// `None` where they aren't known.
    pub(super) features: Option<Rc<[String]>>,
    pub(super) root: ScopeId,
}

/// What names are looked up in.
pub(super) struct Scope {
    pub(super) of: CrateId,
    /// The module or block around it; `None` for a crate's root.
    pub(super) parent: Option<ScopeId>,
    /// Whether it is a block in a function: names that it hasn't are looked up around it.
    pub(super) is_block: bool,
    /// `crate::rows`, for messages.
    pub(super) path: String,
    /// Modules by name; several where conditions of which one can't be decided tell them apart.
    pub(super) modules: HashMap<String, Vec<(ScopeId, Visible)>>,
    pub(super) functions: HashMap<String, Vec<FunctionId>>,
    pub(super) imports: Vec<Rc<Import>>,
}

/// Who sees an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    Everywhere,
    /// A module or block and what stands in it.
    Within(ScopeId),
}

/// A name, or all names of a module, that a `use` brings.
pub(super) struct Import {
    pub(super) visible: Visible,
    pub(super) path: Segments,
    /// The name here; `None` for all names of the module at the path.
    pub(super) name: Option<String>,
}

/// A path as it is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// Whether it begins with `::`, and so with a crate.
    pub(super) is_global: bool,
    pub(super) names: Vec<String>,
}

impl Segments {
    pub(super) fn of(path: &syn::Path) -> Segments {
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        Segments { is_global: path.leading_colon.is_some(), names: names.collect() }
    }
}

/// A function with `#[tile_fn]`.
pub(super) struct Function {
    pub(super) item: ItemFn,
    pub(super) scope: ScopeId,
    pub(super) visible: Visible,
    /// What it sees of its module by itself.
    pub(super) seen: Helpers,
    pub(super) place: Place,
}

/// A function with `#[tile_kernel]`.
pub(super) struct Kernel {
    pub(super) attribute: Attribute,
    pub(super) item: ItemFn,
    pub(super) scope: ScopeId,
    /// What it sees of its module by itself.
    pub(super) seen: Helpers,
    pub(super) place: Place,
}

/// A `macro_rules!` with kernels in it, or a macro that is given some.
pub(super) struct Maker {
    pub(super) name: String,
    pub(super) place: Place,
}

/// A line of a file, which is named relative to the package's folder: `src/main.rs:12`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Tree {
    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    pub(super) fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0]
    }

    /// The module that a scope is, or is a block in.
    pub(super) fn module(&self, mut scope: ScopeId) -> ScopeId {
        while let (true, Some(parent)) = (self.scope(scope).is_block, self.scope(scope).parent) {
            scope = parent;
        }
        scope
    }

    /// Whether code in a scope sees what is `visible`.
    pub(super) fn sees(&self, scope: ScopeId, visible: Visible) -> bool {
        let Visible::Within(within) = visible else { return true };
        std::iter::successors(Some(scope), |&scope| self.scope(scope).parent).any(|around| around == within)
    }

    /// The functions of a name, wherever they stand.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = FunctionId> {
        let is = move |(_, function): &(usize, &Function)| function.item.sig.ident == name;
        self.functions.iter().enumerate().filter(is).map(|(number, _)| FunctionId(number))
    }

    /// A function as messages name it: `` `crate::rows::bump` (src/rows.rs:3) ``.
    pub(super) fn title(&self, id: FunctionId) -> String {
        let function = self.function(id);
        format!("`{}::{}` ({})", self.scope(function.scope).path, function.item.sig.ident, function.place)
    }
}
