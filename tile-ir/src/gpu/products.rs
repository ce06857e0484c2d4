//! Which matrix instruction does a product, and how the block's warps share it.

use super::Threads;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, ValueId};
use crate::target::{MatrixInstruction, TargetDesc};
use tile_layout::linear::{Distribution, MatrixShape, Operand};

/// A product by matrix instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The instruction.
    pub instruction: MatrixInstruction,
    /// What each bit of a warp's number counts along: rows (0) or columns (1) of the result, or, where there are more
    /// warps than it has parts, nothing.
    warps: Vec<Option<usize>>,
}

impl Product {
    /// The first instruction of the target that an `mma` of a verified instance can be cut into.
    pub(super) fn of(kernel: &Kernel, data: &OpData, target: &TargetDesc, threads: Threads) -> Option<Product> {
        if threads.lanes != u64::from(target.warp) {
            return None;
        }
        let dtype = |value: ValueId| kernel.ty(value).elem().known().expect("an instance has no dtype parameters");
        let (a, b, sum) = (dtype(data.operands[0]), dtype(data.operands[1]), dtype(data.results[0]));
        let shape = extents(kernel, data);
        let fits = |instruction: &&MatrixInstruction| {
            (a, b) == (instruction.factor, instruction.factor)
                && adds(instruction.sum, sum)
                && shape.iter().zip(steps(instruction.shape)).all(|(extent, step)| extent.is_multiple_of(step))
        };
        let instruction = *target.matrix.iter().find(fits)?;
        Some(Product { instruction, warps: shared_by(threads.warps, [shape[0], shape[1]], instruction.shape) })
    }

    /// How a tile that is one of the operands lies in the block.
    pub(super) fn distribution(&self, tile: &[u64], operand: Operand) -> Distribution {
        let fragment = self.instruction.fragment(operand);
        let warps: Vec<Option<usize>> = self
            .warps
            .iter()
            .map(|&axis| match operand {
                Operand::A => axis.filter(|&axis| axis == 0),
                Operand::B => axis.filter(|&axis| axis == 1),
                Operand::Accumulator => axis,
            })
            .collect();
        Distribution::of_fragment(tile, &fragment, &warps).expect("a fragment covers its tile")
    }
}

/// Whether sums in a format serve an accumulator of another: narrow floats are rounded once at the end.
fn adds(sum: DType, accumulator: DType) -> bool {
    sum == accumulator || (sum == DType::F32 && accumulator.is_narrow_float())
}

/// Rows, columns and depth of a product.
fn extents(kernel: &Kernel, data: &OpData) -> [u64; 3] {
    let shape = |value| super::shape_of(kernel, value).expect("verified: a tile");
    let (a, result) = (shape(data.operands[0]), shape(data.results[0]));
    let rank = result.len();
    [result[rank - 2], result[rank - 1], a[rank - 1]]
}

fn steps(shape: MatrixShape) -> [u64; 3] {
    [shape.m, shape.n, shape.k].map(u64::from)
}

/// What each bit of a warp's number counts along, so that a warp's part is as square as can be: it reads the factors
/// of its rows and of its columns.
fn shared_by(warps: u64, mut part: [u64; 2], instruction: MatrixShape) -> Vec<Option<usize>> {
    let steps = [u64::from(instruction.m), u64::from(instruction.n)];
    let next = |_| {
        let splits = |&axis: &usize| part[axis].is_multiple_of(2 * steps[axis]);
        let axis = [0, 1].into_iter().filter(splits).max_by_key(|&axis| (part[axis], std::cmp::Reverse(axis)))?;
        part[axis] /= 2;
        Some(axis)
    };
    (0..warps.ilog2()).map(next).collect()
}
