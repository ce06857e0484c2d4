//! Where elements of views lie, as both ways to lay out tiles ask for it: strides and offsets of moved tensors,
//! the indices that exist, places named by data.

use super::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::types::TensorType;
use tile_ir::view::Source;
use tile_ir::{DType, Dim, ValueId};

/// A tensor as a kernel's code sees it: all that a moved one adds to its address and extents.
#[derive(Clone)]
pub(crate) struct Place<'c> {
    /// Elements from one index to the next, per axis.
    pub(crate) strides: Vec<IntValue<'c>>,
    /// The position of index `[0, 0, …]`, which may not exist.
    pub(crate) offset: IntValue<'c>,
    /// Per axis, ranges besides `0..extent` that an index must lie in.
    pub(crate) windows: Vec<Vec<(IntValue<'c>, IntValue<'c>)>>,
    /// Whether every axis that was selected at run time had its index; `None` where none was.
    pub(crate) exists: Option<IntValue<'c>>,
}

/// What code knows by name: run-time sizes and index scalars.
pub(crate) struct Names<'n, 'c> {
    pub(crate) size: &'n dyn Fn(&str) -> IntValue<'c>,
    pub(crate) index: &'n dyn Fn(ValueId) -> IntValue<'c>,
}

impl<'c> Ir<'c> {
    /// The place of a tensor value.
    pub(crate) fn place(&self, tensor: &TensorType, source: &Source, names: &Names<'_, 'c>) -> Place<'c> {
        let number = |dim: &Dim| self.signed_dim(dim, names.size);
        let strided = tensor.strided();
        let window = |axis: &Vec<(Dim, Dim)>| axis.iter().map(|(a, b)| (number(a), number(b))).collect();
        let mut place = Place {
            strides: strided.strides.iter().map(number).collect(),
            offset: number(&strided.offset),
            windows: strided.windows.iter().map(window).collect(),
            exists: None,
        };
        for selection in &source.selections {
            let (axis, index) = (selection.axis, (names.index)(selection.index));
            let from = selection.from.strided();
            place.offset = self.add(place.offset, self.mul(index, number(&from.strides[axis])));
            let extent = self.dim(&selection.from.extents[axis], names.size);
            let windows: Vec<_> = window(&from.windows[axis]);
            let exists = self.index_exists(index, extent, &windows);
            place.exists = Some(place.exists.map_or(exists, |before| self.and(before, exists)));
        }
        place
    }

    /// Whether an index of an axis has an element; as an unsigned number a negative index is beyond any extent.
    pub(crate) fn index_exists(
        &self,
        index: IntValue<'c>,
        extent: IntValue<'c>,
        windows: &[(IntValue<'c>, IntValue<'c>)],
    ) -> IntValue<'c> {
        windows.iter().fold(self.icmp(IntPredicate::ULT, index, extent), |exists, &(begin, end)| {
            let begun = self.icmp(IntPredicate::SGE, index, begin);
            self.and(exists, self.and(begun, self.icmp(IntPredicate::SLT, index, end)))
        })
    }

    /// Of the places `0..end` of a tile that begins at `start`, those that lie in all windows.
    pub(crate) fn trim(
        &self,
        start: IntValue<'c>,
        end: IntValue<'c>,
        windows: &[(IntValue<'c>, IntValue<'c>)],
    ) -> (IntValue<'c>, IntValue<'c>) {
        let least = |a, b| self.select_int(self.icmp(IntPredicate::SLT, a, b), a, b);
        let most = |a, b| self.select_int(self.icmp(IntPredicate::SGT, a, b), a, b);
        let zero = self.i64(0);
        windows.iter().fold((zero, end), |(first, last), &(begin, end)| {
            let last = least(last, most(self.sub(end, start), zero));
            (least(most(first, self.sub(begin, start)), last), last)
        })
    }

    /// The position that indices of data name, and whether there is an element.
    pub(crate) fn gather_place(
        &self,
        place: &Place<'c>,
        extents: &[IntValue<'c>],
        indices: &[(Value<'c>, DType)],
    ) -> (IntValue<'c>, IntValue<'c>) {
        let (mut position, mut exists) = (place.offset, place.exists);
        for (axis, &(index, dtype)) in indices.iter().enumerate() {
            let index = self.cast(dtype, DType::I64, index).into_int_value();
            let here = self.index_exists(index, extents[axis], &place.windows[axis]);
            exists = Some(exists.map_or(here, |exists| self.and(exists, here)));
            position = self.add(position, self.mul(index, place.strides[axis]));
        }
        (position, exists.expect("verified: a tensor has rank 1 or more"))
    }

    /// An address that may lie outside the array, and then isn't accessed.
    pub(crate) fn offset(
        &self,
        ty: BasicTypeEnum<'c>,
        base: PointerValue<'c>,
        index: IntValue<'c>,
    ) -> PointerValue<'c> {
        // SAFETY: without `inbounds` any offset is allowed.
        let address = unsafe { self.builder.build_gep(ty, base, &[index], "") };
        address.expect("the builder is positioned")
    }

    /// The same address, of which LLVM's loop passes don't know what it was made of, so that they compute it once.
    pub(crate) fn of_its_own(&self, address: PointerValue<'c>) -> PointerValue<'c> {
        let name = "llvm.launder.invariant.group";
        let own = self.intrinsic(name, &[address.get_type().into()], &[address.into()]);
        own.expect("it gives a pointer").into_pointer_value()
    }
}
