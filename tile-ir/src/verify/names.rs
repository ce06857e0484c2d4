//! Names in extents and formats: each is a parameter of the kernel or a size that a launch binds.

use super::Verifier;
use crate::dim::Dim;
use crate::kernel::{FastAccumulation, Generic, GenericKind, OpId, Presence};
use crate::loc::Loc;
use crate::ops::{Op, TypeError};
use crate::tile_order::TileOrder;
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
            if let Err(TypeError { message, help, .. }) = hint.check(value) {
                self.error_with_help(Loc::UNKNOWN, message, help.unwrap_or_default());
            }
        }
    }

    pub(super) fn attribute_names(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        if let Op::Extent(dim) = &data.op {
            self.dim_is_bound(dim, data.loc);
        }
        if let Op::Partition(cut) = &data.op {
            cut.hints.latency.iter().for_each(|dim| self.dim_is_bound(dim, data.loc));
        }
        if let Op::Tiles(TileOrder::Grouped(rows)) = &data.op {
            self.dim_is_bound(rows, data.loc);
        }
        if let Op::Movement(movement) = &data.op {
            movement.dims().into_iter().for_each(|dim| self.dim_is_bound(dim, data.loc));
        }
        for &result in &data.results {
            self.names_are_bound(self.kernel.ty(result), data.loc);
        }
    }

    pub(super) fn names_are_bound(&mut self, ty: &Type, loc: Loc) {
        let (dims, elem) = match ty {
            Type::Scalar(elem) => (Vec::new(), elem),
            Type::Tile(tile) => (tile.shape.iter().collect(), &tile.elem),
            Type::Tensor(tensor) => (tensor.dims().collect(), &tensor.elem),
            Type::Partition(view) => {
                (view.tensor.dims().chain(&view.tile).chain(&view.steps).collect(), &view.tensor.elem)
            }
        };
        for dim in dims {
            self.dim_is_bound(dim, loc);
        }
        if let Elem::Param(name) = elem {
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
