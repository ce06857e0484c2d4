//! Arguments and their views: what an argument may be, that a mutable tensor has one partition view or atomic ones, and
//! where views are made.

use super::Verifier;
use crate::kernel::{OpId, ValueId};
use crate::loc::Loc;
use crate::types::{PartitionType, Type};
use crate::view::Source;

impl Verifier<'_> {
    pub(super) fn argument(&mut self, param: ValueId) {
        let data = self.kernel.value(param);
        self.defined.insert(param);
        if data.name.is_none() {
            self.error(Loc::UNKNOWN, "an argument has no name");
        }
        let is_size = self.kernel.given_sizes.contains(&param);
        if is_size && (data.ty != Type::INDEX || self.kernel.optional.contains_key(&param)) {
            self.error_with_help(
                Loc::UNKNOWN,
                format!("`{}` can't be a run-time size", data.name.as_deref().unwrap_or("an argument")),
                "an argument that is a size is an index that every instance has",
            );
        }
        match &data.ty {
            Type::Scalar(_) => {}
            Type::Tensor(tensor) if tensor.extents.is_empty() => {
                self.error(Loc::UNKNOWN, "a tensor argument has rank 0");
            }
            Type::Tensor(tensor) if tensor.elem.known().is_some_and(|dtype| !dtype.is_element()) => {
                self.error_with_help(
                    Loc::UNKNOWN,
                    "a tensor can't hold `usize`",
                    "its elements are of a sized integer, such as u64",
                );
            }
            Type::Tensor(tensor)
                if tensor.layout.is_some() && self.kernel.layout_of(param, tensor).is_none() =>
            {
                self.error_with_help(
                    Loc::UNKNOWN,
                    "a tensor argument is dense, or has strides of 0, 1 and run-time sizes of its own; written it has none of 0",
                    "`view` gives it other layouts",
                );
            }
            Type::Tensor(_) => {}
            other => self.error(Loc::UNKNOWN, format!("an argument can't be {other}")),
        }
        self.names_are_bound(&data.ty, Loc::UNKNOWN);
    }

    pub(super) fn inner_view(&mut self, op: OpId) {
        self.error_with_help(
            self.kernel.op(op).loc,
            "a view of a tensor is made at the top level of a kernel, not in a loop or branch",
            "move it before the loop or branch",
        );
    }

    pub(super) fn partition(&mut self, op: OpId, top_level: bool) {
        let data = self.kernel.op(op);
        if !top_level {
            self.error_with_help(
                data.loc,
                "a partition view is made at the top level of a kernel, not in a loop or branch",
                "move it before the loop or branch",
            );
        }
        let Some(&tensor) = data.operands.first() else { return };
        let mutable = matches!(self.kernel.ty(tensor), Type::Tensor(tensor) if tensor.mutable);
        let argument = Source::of(self.kernel, tensor).argument;
        let name = self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
        if mutable && self.kernel.has_own_grid() {
            self.error_with_help(
                data.loc,
                format!("the kernel has a grid of its own, so no block owns a tile of `{name}`"),
                "leave `grid = […]` out: the tiles of a `partition_view_mut` are the grid",
            );
        }
        if mutable {
            self.one_grid(op, argument);
        }
        if mutable && self.atomic.contains(&argument) {
            self.viewed_twice(argument, data.loc);
        }
        let view = data.results.first().and_then(|&view| self.kernel.ty(view).as_partition());
        let is_of_pass = !self.is_written && view.is_some_and(PartitionType::is_spanned);
        if mutable && !self.viewed.insert(argument) && !is_of_pass {
            self.error_with_help(
                data.loc,
                format!("`{name}` has two mutable partition views; a block owns one tile of it"),
                "use one view; `reshape` and `permute` give its tiles other shapes, and of a view `.spanning([axis])` a \
                 block owns all tiles along that axis: `y.at([0])`, `y.at([1])`; parts become such an axis by \
                 `unflatten`, as two halves by `y.unflatten(1, [2, n / 2])`",
            );
        }
    }

    pub(super) fn atomic_tensor(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let Some(&tensor) = data.operands.first() else { return };
        let argument = Source::of(self.kernel, tensor).argument;
        self.atomic.insert(argument);
        if self.viewed.contains(&argument) {
            self.viewed_twice(argument, data.loc);
        }
    }

    fn viewed_twice(&mut self, argument: ValueId, loc: Loc) {
        let name = self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
        self.error_with_help(
            loc,
            format!(
                "`{name}` has an atomic view and a partition view: any block may change what one block owns"
            ),
            "make all accesses atomic, or pass two tensors",
        );
    }
}
