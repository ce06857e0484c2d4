//! Which matrix instruction does a product, and how the block's warps share it.

use super::Threads;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::target::{MatrixInstruction, TargetDesc};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
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

/// The products of a verified instance that a target has instructions for.
pub(super) fn products(kernel: &Kernel, target: &TargetDesc, threads: Threads) -> HashMap<OpId, Product> {
    let ops: Vec<OpId> = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::Mma).collect();
    let by_rows = ops.iter().any(|&op| goes_on_by_rows(kernel, op));
    let product = |op| Some((op, Product::of(kernel, kernel.op(op), target, (threads, by_rows))?));
    ops.into_iter().filter_map(product).collect()
}

/// Whether what becomes of a product, element by element, is reduced along its rows or is the left factor of another:
/// a warp that has whole rows then needs nothing of other warps.
fn goes_on_by_rows(kernel: &Kernel, product: OpId) -> bool {
    let mut reached: HashSet<ValueId> = kernel.op(product).results.iter().copied().collect();
    // Uses follow definitions in the walk.
    kernel.walk().into_iter().filter(|&op| op != product).any(|op| {
        let data = kernel.op(op);
        let uses = |operand: &ValueId| reached.contains(operand);
        match &data.op {
            Op::Reduce { axis, .. } => uses(&data.operands[0]) && *axis + 1 == rank(kernel, data.operands[0]),
            Op::Mma => uses(&data.operands[0]),
            leaf if leaf.is_leaf() && data.operands.iter().any(uses) => {
                reached.extend(&data.results);
                false
            }
            _ => false,
        }
    })
}

fn rank(kernel: &Kernel, tile: ValueId) -> usize {
    super::shape_of(kernel, tile).map_or(0, |shape| shape.len())
}

impl Product {
    /// The first instruction of the target that an `mma` of a verified instance can be cut into.
    fn of(
        kernel: &Kernel,
        data: &OpData,
        target: &TargetDesc,
        (threads, by_rows): (Threads, bool),
    ) -> Option<Product> {
        if threads.lanes != u64::from(target.warp) {
            return None;
        }
        let dtype =
            |value: ValueId| kernel.ty(value).elem().known().expect("an instance has no dtype parameters");
        let (a, b, sum) = (dtype(data.operands[0]), dtype(data.operands[1]), dtype(data.results[0]));
        let shape = extents(kernel, data);
        let fits = |instruction: &&MatrixInstruction| {
            (a, b) == (instruction.factor, instruction.factor)
                && adds(instruction.sum, sum)
                && shape
                    .iter()
                    .zip(steps(instruction.shape))
                    .all(|(extent, step)| extent.is_multiple_of(step))
        };
        let instruction = *target.matrix.iter().find(fits)?;
        Some(Product {
            instruction,
            warps: shared_by(threads.warps, [shape[0], shape[1]], instruction.shape, by_rows),
        })
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

/// What each bit of a warp's number counts along: so that a warp's part is as square as can be, because it reads the
/// factors of its rows and of its columns; or rows first.
fn shared_by(warps: u64, mut part: [u64; 2], instruction: MatrixShape, by_rows: bool) -> Vec<Option<usize>> {
    let steps = [u64::from(instruction.m), u64::from(instruction.n)];
    let next = |_| {
        let splits = |&axis: &usize| part[axis].is_multiple_of(2 * steps[axis]);
        let rank = |&axis: &usize| (by_rows && axis == 0, part[axis], Reverse(axis));
        let axis = [0, 1].into_iter().filter(splits).max_by_key(rank)?;
        part[axis] /= 2;
        Some(axis)
    };
    (0..warps.ilog2()).map(next).collect()
}
