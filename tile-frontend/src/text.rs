//! The text that is being lowered, a kernel's or a function's: what names of types and functions mean in it.
//!
//! A closure's body means the same wherever it is called, so a closure keeps the text that it stands in.

use crate::callable::{self, Callable};
use crate::helpers::Helpers;
use crate::rewrite::Place;
use std::collections::HashMap;
use std::rc::Rc;
use syn::Type;
use tile_ir::Elem;
use tile_ir::kernel::{Generic, GenericKind};

/// Where a function's name stands: functions of two modules may share a name.
pub(crate) type Defined = (String, String, Place);

/// What a piece of source is a part of.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// The functions and constants that it sees.
    pub(crate) helpers: Rc<Helpers>,
    /// The functions whose calls are around it, outermost first.
    pub(crate) functions: Vec<Defined>,
    /// What the type parameters of its function, or of the kernel, are bound to.
    pub(crate) types: HashMap<String, Elem>,
    /// Those of its function's type parameters that are closures.
    pub(crate) closures: HashMap<String, Callable>,
    /// Whether it is the kernel's own, which rustc sees rewritten.
    pub(crate) is_own: bool,
    /// Whether it stands in another file than the kernel, or is called from there.
    pub(crate) is_foreign: bool,
    /// Whether it stands in another module than the kernel, or is called from there.
    pub(crate) is_elsewhere: bool,
}

impl Text {
    /// The text of a kernel with these parameters in `<…>`.
    pub(crate) fn of_kernel(helpers: &Helpers, generics: &[Generic]) -> Text {
        let (functions, closures) = Default::default();
        let helpers = Rc::new(helpers.clone());
        let types = generics.iter().filter(|generic| matches!(generic.kind, GenericKind::Elem(_)));
        let types = types.map(|generic| (generic.name.clone(), Elem::Param(generic.name.clone()))).collect();
        Text { helpers, functions, types, closures, is_own: true, is_foreign: false, is_elsewhere: false }
    }

    /// The same place as what the constants of its module see: nothing of a function.
    pub(crate) fn of_constants(&self) -> Text {
        Text { types: HashMap::new(), closures: HashMap::new(), ..self.clone() }
    }

    /// What closure a type declares here, by value or by reference.
    pub(crate) fn callable(&self, ty: &Type) -> Option<Callable> {
        match ty {
            Type::Paren(inner) => self.callable(&inner.elem),
            Type::Group(inner) => self.callable(&inner.elem),
            Type::Reference(inner) => self.callable(&inner.elem),
            Type::ImplTrait(bounds) => callable::of_bounds(&bounds.bounds),
            Type::Path(path) => self.closures.get(&path.path.get_ident()?.to_string()).cloned(),
            _ => None,
        }
    }
}
