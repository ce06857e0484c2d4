//! How a gather that reads parts of rows reaches memory.
//!
//! Along one axis of its result the indices of one axis of the tensor are consecutive, and all others stay the same
//! ([`Lines`]). Where that axis of the tensor has stride 1, neighbours lie next to each other; and as many of them as
//! begin at a multiple of their size together all exist, or none does: what divides them divides the axis's extent, too.

use super::{Access, TENSOR_ALIGNMENT, common, divisor, product, selections};
use crate::analysis::{Divisors, Facts, GatheredRow, Lines};
use crate::dim::Dim;
use crate::gpu::{dtype_of, shape_of};
use crate::kernel::{Kernel, OpData, OpId};
use crate::types::Type;

impl Access {
    /// The access of a gather of a verified instance; `None` where neighbours aren't known to lie next to each other.
    pub(in crate::gpu) fn of_gather(
        kernel: &Kernel,
        (divisors, facts): (&Divisors, &Facts),
        lines: &mut Lines<'_>,
        op: OpId,
    ) -> Option<Access> {
        let data = kernel.op(op);
        let Type::Tensor(tensor) = kernel.ty(data.operands[0]) else { unreachable!("verified: a tensor") };
        let strides = tensor.strided().strides;
        let rank = shape_of(kernel, data.results[0]).expect("verified: a tile").len();
        let is_contiguous = |row: &GatheredRow| strides[row.tensor_axis].as_const() == Some(1);
        let row = (0..rank).rev().find_map(|axis| lines.row(data, axis).filter(is_contiguous))?;
        let vector = vector(kernel, (divisors, facts), data, row);
        let mut order: Vec<usize> = (0..rank).rev().collect();
        order.sort_by_key(|&axis| axis != row.tile_axis);
        Some(Access { order, vector, whole: vector, near: false })
    }
}

/// How many neighbours along a row are aligned and exist together.
fn vector(kernel: &Kernel, (divisors, facts): (&Divisors, &Facts), data: &OpData, row: GatheredRow) -> u64 {
    let Type::Tensor(tensor) = kernel.ty(data.operands[0]) else { unreachable!("verified: a tensor") };
    let (strided, result) = (tensor.strided(), data.results[0]);
    if !strided.windows[row.tensor_axis].is_empty() {
        return 1;
    }
    let divisor = |dim: &Dim| divisor(facts, dim);
    let tile = shape_of(kernel, result).expect("verified: a tile")[row.tile_axis];
    let all = common(TENSOR_ALIGNMENT / dtype_of(kernel, result).bytes() as u64, tile).min(row.run);
    let all = common(common(all, divisor(&tensor.extents[row.tensor_axis])), divisor(&strided.offset));
    let others = (0..strided.strides.len()).filter(|&axis| axis != row.tensor_axis);
    let all = others.fold(all, |all, axis| {
        let index = divisors.divisor(data.operands[2 + axis]);
        common(all, product(divisor(&strided.strides[axis]), index))
    });
    selections(kernel, (divisors, facts), data.operands[0]).fold(all, common)
}
