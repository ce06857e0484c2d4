//! How threads join what a reduction along an axis joins: each its own elements, then lanes of a warp, then warps of a
//! block, then blocks of a cluster.

use crate::dtype::DType;
use crate::gpu::LaidOut;
use crate::kernel::OpData;
use crate::ops::{Op, ReduceOp};
use std::collections::HashMap;
use tile_layout::linear::Distribution;

/// A reduction and which bits of a thread's number differ along its axis.
pub struct Reduction<'s> {
    /// What joins two elements.
    pub op: ReduceOp,
    /// The axis.
    pub axis: usize,
    /// The format in which elements are joined.
    pub dtype: DType,
    /// Where its operand lies.
    pub operand: &'s Distribution,
    /// Where its result lies.
    pub result: &'s Distribution,
    /// Bits of the lane's number.
    pub lanes: Vec<u32>,
    /// Bits of the thread's number that are the warp's.
    pub warps: Vec<u32>,
    /// Bits of the thread's number that are the block's.
    pub blocks: Vec<u32>,
}

/// Of each slot of what is left of a tile along an axis, the tile's slots of the same line.
pub fn members(operand: &Distribution, result: &Distribution, axis: usize) -> Vec<Vec<u64>> {
    let key = |distribution: &Distribution, slot: u64| {
        let (mut start, mut within) = distribution.slot(slot);
        (start[axis], within[axis]) = (0, 0);
        (start, within)
    };
    let slots: HashMap<_, _> = (0..result.slots()).map(|slot| (key(result, slot), slot as usize)).collect();
    let mut members = vec![Vec::new(); slots.len()];
    for slot in 0..operand.slots() {
        members[slots[&key(operand, slot)]].push(slot);
    }
    members
}

impl<'s> Reduction<'s> {
    /// The reduction of a tile along an axis.
    pub(in crate::gpu) fn of(laid_out: &'s LaidOut, data: &OpData) -> Reduction<'s> {
        let Op::Reduce { op, axis } = data.op else { unreachable!("it is asked of reductions alone") };
        let [operand, result] =
            [data.operands[0], data.results[0]].map(|tile| &laid_out.distributions[&tile]);
        let dtype = op.partial(laid_out.dtype(data.operands[0]));
        let copies = operand.copies();
        let along = operand.thread_bits().enumerate().filter(|(_, position)| position[axis] != 0);
        let bits = along.map(|(bit, _)| bit as u32).filter(|bit| copies >> bit & 1 == 0);
        let (lane_bits, block_bits) = (operand.lane_count().ilog2(), laid_out.threads.of_block().ilog2());
        let (lanes, others): (Vec<u32>, Vec<u32>) = bits.partition(|&bit| bit < lane_bits);
        let (warps, blocks) = others.into_iter().partition(|&bit| bit < block_bits);
        Reduction { op, axis, dtype, operand, result, lanes, warps, blocks }
    }

    /// The slots of the operand that each slot of the result joins.
    pub fn members(&self) -> Vec<Vec<u64>> {
        members(self.operand, self.result, self.axis)
    }

    /// Partial results that warps of a block give each other: for each result, of every warp along the axis. `None` where
    /// they give each other none.
    pub fn exchanged_by_warps(&self) -> Option<u64> {
        self.exchanged(&self.warps)
    }

    /// Partial results that blocks give each other: for each result, of every block along the axis. `None` where they give
    /// each other none.
    pub fn exchanged_by_blocks(&self) -> Option<u64> {
        self.exchanged(&self.blocks)
    }

    fn exchanged(&self, along: &[u32]) -> Option<u64> {
        (!along.is_empty()).then(|| self.result.shape().iter().product::<u64>() << along.len())
    }
}
