//! Names in extents and formats: each is a parameter of the kernel or a size that a launch binds.

use super::Verifier;
use crate::dim::Dim;
use crate::kernel::{FastAccumulation, Generic, GenericKind, OpId, Presence};
use crate::loc::Loc;
use crate::ops::TypeError;
use crate::types::{Elem, Type};
use std::collections::BTreeSet;

impl Verifier<'_> {
    pub(super) fn generics(&mut self) {
        let mut names = BTreeSet::new();
        for generic in &self.kernel.generics {
            if !names.insert(&generic.name) {
                self.error(Loc::UNKNOWN, format!("parameter `{}` is declared twice", generic.name));
            }
        }
    }

    pub(super) fn parameters_of_presences(&mut self) {
        let fast = match &self.kernel.fast_accumulation {
            FastAccumulation::If(presence) => Some(presence),
            FastAccumulation::No | FastAccumulation::Yes => None,
        };
        for Presence { parameter, .. } in self.kernel.optional.values().chain(fast) {
            let counts = |g: &Generic| g.name == *parameter && !matches!(g.kind, GenericKind::Elem(_));
            if !self.kernel.generics.iter().any(counts) {
                let message = format!(
                    "`{parameter}` is neither a `bool` nor a number that the kernel has as a parameter"
                );
                self.error(Loc::UNKNOWN, message);
            }
        }
    }

    pub(super) fn schedule_hints(&mut self) {
        for (hint, value) in self.kernel.hints.said() {
            self.dim_is_bound(value, Loc::UNKNOWN);
            if let Err(error) = hint.check(value) {
                self.type_error(Loc::UNKNOWN, error);
            }
        }
    }

    pub(super) fn attribute_names(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let types: Vec<&Type> = data.results.iter().map(|&result| self.kernel.ty(result)).collect();
        let of_op = data.op.dims();
        // What a result's type has of the op is said once.
        let of_types: Vec<&Dim> = types.iter().flat_map(|ty| ty.dims()).collect();
        for dim in of_op.iter().filter(|dim| !of_types.contains(dim)) {
            self.dim_is_bound(dim, data.loc);
        }
        for ty in types {
            self.names_are_bound(ty, data.loc);
        }
    }

    pub(super) fn names_are_bound(&mut self, ty: &Type, loc: Loc) {
        for dim in ty.dims() {
            self.dim_is_bound(dim, loc);
        }
        if let Elem::Param(name) = ty.elem() {
            let is_elem = |g: &Generic| g.name == *name && matches!(g.kind, GenericKind::Elem(_));
            let declared = self.kernel.generics.iter().any(is_elem);
            if !declared {
                self.error(loc, format!("`{name}` is not an element type parameter of the kernel"));
            }
        }
    }

    pub(super) fn dim_is_bound(&mut self, dim: &Dim, loc: Loc) {
        if dim.as_const().is_some() {
            return;
        }
        if self.is_written
            && let Err(error) = TypeError::refuse_long([dim])
        {
            self.type_error(loc, error);
        }
        let (mut params, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        dim.collect_names(&mut params, &mut sizes);
        for param in params {
            let is_number = |g: &Generic| g.name == param && !matches!(g.kind, GenericKind::Elem(_));
            let declared = self.kernel.generics.iter().any(is_number);
            if !declared {
                self.error(loc, format!("`{param}` is not a const parameter of the kernel"));
            }
        }
        for size in sizes {
            // It is said once.
            if self.bound.insert(size.clone()) {
                let help = format!(
                    "a run-time size must be the whole extent of some argument's axis, or an argument `{size}: usize`: an extent such as `{{ {size} + 1 }}` gets a name of its own, `more`, and `{size}` is written `more - 1`"
                );
                self.error_with_help(loc, format!("nothing binds the run-time size `{size}`"), help);
            }
        }
    }
}
