//! How ops that name elements by indices reach memory where they go along rows: gathers, atomic stores and atomic
//! additions.
//!
//! Along one axis of a tile the indices of one axis of the tensor are consecutive, and all others stay the same
//! ([`Lines`]). Where that axis of the tensor has stride 1, neighbours lie next to each other; and as many of them as
//! begin at a multiple of their size together all exist, or none does: what divides them divides the axis's extent, too.
//!
//! An instruction that stores or adds several elements is an atomic operation of each of them. Which formats a target
//! has it for is data ([`TargetDesc::atomic_store_bytes`], [`TargetDesc::vector_adds`]).

use super::{Access, TENSOR_ALIGNMENT, common, divisor, product, selections};
use crate::analysis::{GatheredRow, Line, Lines};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::gpu::numbers::Numbers;
use crate::gpu::shape_of;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{Atomic, AtomicKind, Op, Scope};
use crate::target::TargetDesc;
use crate::types::{TensorType, Type};
use crate::view::Source;

/// Elements of fewer bytes are stored by words of so many.
const WORD_BYTES: usize = 4;

/// Elements that an op names: those of a tensor at the numbers of one tile for each of its axes.
#[derive(Clone, Copy)]
struct Named<'k> {
    numbers: &'k Numbers<'k>,
    tensor: ValueId,
    ty: &'k TensorType,
    indices: &'k [ValueId],
}

/// What one instruction does to several elements at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Together {
    most: u64,
    feature: &'static str,
}

impl Access {
    /// The access of a gather of a verified instance; `None` where neighbours aren't known to lie next to each other.
    pub(in crate::gpu) fn of_gather(
        numbers: &Numbers<'_>,
        lines: &mut Lines<'_>,
        op: OpId,
    ) -> Option<Access> {
        let named = Named::of(numbers, numbers.kernel.op(op), 2);
        let row = named.row(lines)?;
        Some(Access::along(named, row, named.vector(row)))
    }

    /// The access of an atomic operation of a verified instance that does several elements by one instruction; `None`
    /// where it does each by one of its own.
    pub(in crate::gpu) fn of_scatter(
        numbers: &Numbers<'_>,
        lines: &mut Lines<'_>,
        op: OpId,
        target: &TargetDesc,
    ) -> Option<Access> {
        let data = numbers.kernel.op(op);
        let Op::Atomic(atomic) = data.op else { return None };
        let named = Named::of(numbers, data, 1);
        let together = named.together(data, atomic, target)?;
        let row = named.row(lines)?;
        let mask = data.operands.last().filter(|_| atomic.masked);
        if mask.is_some_and(|&mask| lines.along(mask, row.tile_axis) != Line::Constant) {
            return None;
        }
        let vector = named.vector(row).min(together.most);
        let feature = together.feature;
        (vector > 1).then(|| Access { feature, ..Access::along(named, row, vector) })
    }

    fn along(named: Named<'_>, row: GatheredRow, vector: u64) -> Access {
        let mut order: Vec<usize> = (0..named.shape().len()).rev().collect();
        order.sort_by_key(|&axis| axis != row.tile_axis);
        Access { order, vector, whole: vector, near: false, feature: "" }
    }
}

impl<'k> Named<'k> {
    /// Those of an op whose tensor is its first operand, and whose indices begin at another.
    fn of(numbers: &'k Numbers<'k>, data: &'k OpData, first: usize) -> Self {
        let tensor = data.operands[0];
        let Type::Tensor(ty) = numbers.kernel.ty(tensor) else { unreachable!("verified: a tensor") };
        Named { numbers, tensor, ty, indices: &data.operands[first..first + ty.extents.len()] }
    }

    /// The extents of the tiles of indices.
    fn shape(self) -> Vec<u64> {
        shape_of(self.numbers.kernel, self.indices[0]).expect("verified: a tile")
    }

    fn dtype(self) -> DType {
        self.ty.elem.known().expect("an instance has no dtype parameters")
    }

    /// The row along which neighbours lie next to each other; of several, that along the last axis.
    fn row(self, lines: &mut Lines<'_>) -> Option<GatheredRow> {
        let strides = self.ty.strided().strides;
        let is_contiguous = |row: &GatheredRow| strides[row.tensor_axis].as_const() == Some(1);
        (0..self.shape().len()).rev().find_map(|axis| lines.row_of(self.indices, axis).filter(is_contiguous))
    }

    /// How many neighbours along a row are aligned and exist together.
    fn vector(self, row: GatheredRow) -> u64 {
        let strided = self.ty.strided();
        if !strided.windows[row.tensor_axis].is_empty() {
            return 1;
        }
        let divisor = |dim: &Dim| divisor(&self.numbers.facts, dim);
        let tile = self.shape()[row.tile_axis];
        let all = common(TENSOR_ALIGNMENT / self.dtype().bytes() as u64, tile).min(row.run);
        let all = common(common(all, divisor(&self.ty.extents[row.tensor_axis])), divisor(&strided.offset));
        let others = (0..strided.strides.len()).filter(|&axis| axis != row.tensor_axis);
        let all = others.fold(all, |all, axis| {
            let index = self.numbers.divisors.divisor(self.indices[axis]);
            common(all, product(divisor(&strided.strides[axis]), index))
        });
        selections(self.numbers, self.tensor).fold(all, common)
    }

    /// What an instruction of a target does of an atomic operation; `None` where it does one element.
    fn together(self, data: &OpData, atomic: Atomic, target: &TargetDesc) -> Option<Together> {
        let (dtype, bytes) = (self.dtype(), self.dtype().bytes());
        match atomic.kind {
            // A word of several elements and an access of one of them would be operations of different sizes that race.
            AtomicKind::Store if bytes < WORD_BYTES && !self.is_only_access() => None,
            AtomicKind::Store => {
                Some(Together { most: target.atomic_store_bytes / bytes as u64, feature: "" })
            }
            AtomicKind::Add if atomic.scope != Scope::System && !is_used(self.numbers.kernel, data) => {
                let add = target.vector_adds.iter().find(|add| add.dtype == dtype)?;
                Some(Together { most: add.most, feature: add.feature })
            }
            _ => None,
        }
    }

    /// Whether no other op of the kernel reads or writes elements of the argument.
    fn is_only_access(self) -> bool {
        let argument = |tensor: ValueId| Source::of(self.numbers.kernel, tensor).argument;
        let written = argument(self.tensor);
        let ops = self.numbers.kernel.walk().into_iter().map(|op| self.numbers.kernel.op(op));
        let atomics = ops.filter(|data| matches!(data.op, Op::Atomic(_)));
        atomics.filter(|data| argument(data.operands[0]) == written).count() == 1
    }
}

/// Whether something needs an op's results.
pub(in crate::gpu) fn is_used(kernel: &Kernel, data: &OpData) -> bool {
    let ops = kernel.walk().into_iter();
    ops.flat_map(|op| &kernel.op(op).operands).any(|operand| data.results.contains(operand))
}
