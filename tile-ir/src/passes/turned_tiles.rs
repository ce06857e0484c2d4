//! Tiles that are turned together: what loads give, and what ops on elements and reductions make of it, for one op that needs the
//! last of them with its axes in another order. Loads then read views that are turned, and nothing is turned where it is used.
//!
//! Nothing else needs these tiles, and the loads are of tensors that the kernel only reads.

use super::turned;
use crate::analysis::uses::Uses;
use crate::dim::Dim;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::Op;
use crate::types::PartitionType;
use std::collections::{HashMap, HashSet};

/// Where the values of a kernel are defined and used.
pub(super) struct Known {
    pub(super) definitions: HashMap<ValueId, OpId>,
    uses: Uses,
}

impl Known {
    pub(super) fn of(kernel: &Kernel) -> Known {
        Known { definitions: kernel.definitions(), uses: Uses::of(kernel) }
    }
}

/// Such tiles, and how they are turned.
pub(super) struct TurnedTiles {
    /// The last of them.
    last: ValueId,
    /// Axis `i` of a turned tile is axis `order[i]` of the tile.
    order: Vec<usize>,
    /// The ops that give them, in the order in which they stand.
    ops: Vec<OpId>,
    /// What cuts the tensors of those that are loads into tiles.
    cuts: HashMap<OpId, OpId>,
}

impl TurnedTiles {
    /// The tiles that give one which an op needs; `None` if something else needs one of them, or none is loaded.
    pub(super) fn of(
        kernel: &Kernel,
        Known { definitions, uses }: &Known,
        last: ValueId,
        user: OpId,
        order: Vec<usize>,
    ) -> Option<TurnedTiles> {
        let (mut next, mut found) = (vec![last], HashSet::new());
        let (mut cuts, mut only_here) = (HashMap::new(), Vec::new());
        while let Some(tile) = next.pop() {
            let op = *definitions.get(&tile)?;
            if !found.insert(op) {
                continue;
            }
            let data = kernel.op(op);
            match &data.op {
                Op::Splat(_) | Op::Iota { .. } => continue,
                Op::Reshape(shape) if keeps_order(shape, &order) => continue,
                op if op.is_leaf() || matches!(op, Op::Broadcast(_) | Op::Reduce { .. }) => {
                    next.extend(
                        data.operands.iter().filter(|&&operand| kernel.ty(operand).as_tile().is_some()),
                    );
                }
                _ => {
                    let (cut, _) = turned::read_view(kernel, definitions, data)?;
                    cuts.insert(op, cut);
                }
            }
            only_here.push(tile);
        }
        let is_inner = |other: &OpId| found.contains(other) || *other == user;
        let has_others = only_here.iter().any(|&tile| !uses.of_value(tile).iter().all(is_inner));
        let ops = kernel.walk().into_iter().filter(|op| found.contains(op)).collect();
        (!cuts.is_empty() && !has_others).then_some(TurnedTiles { last, order, ops, cuts })
    }

    /// Whether one of them is reduced.
    pub(super) fn reduces(&self, kernel: &Kernel) -> bool {
        self.ops.iter().any(|&op| matches!(kernel.op(op).op, Op::Reduce { .. }))
    }

    /// The views of tensors that are read, one for each load.
    pub(super) fn views<'k>(&self, kernel: &'k Kernel) -> Vec<&'k PartitionType> {
        let view = |&cut: &OpId| kernel.ty(kernel.op(cut).results[0]).as_partition();
        self.cuts.values().filter_map(view).collect()
    }

    /// Computes them turned; gives the last.
    pub(super) fn turn(&self, kernel: &mut Kernel) -> ValueId {
        let mut tiles = HashMap::new();
        for &op in &self.ops {
            let data = kernel.op(op).clone();
            let mut operands = match self.cuts.get(&op) {
                Some(&cut) => {
                    let view = turned::view(kernel, cut, &self.order);
                    turned::operands(&data, view, &self.order)
                }
                None => data.operands.clone(),
            };
            for operand in &mut operands {
                *operand = tiles.get(operand).copied().unwrap_or(*operand);
            }
            let tile = Inserter::before(kernel, op).emit_typed(self.turned_op(&data.op), operands);
            tiles.insert(data.results[0], tile);
        }
        tiles[&self.last]
    }

    fn turned_op(&self, op: &Op) -> Op {
        let place_of =
            |axis| self.order.iter().position(|before| before == axis).expect("an order has every axis");
        match op {
            Op::Splat(shape) => Op::Splat(turned::axes(shape, &self.order)),
            Op::Broadcast(shape) => Op::Broadcast(turned::axes(shape, &self.order)),
            Op::Reshape(shape) => Op::Reshape(turned::axes(shape, &self.order)),
            Op::Iota { shape, axis, elem } => {
                Op::Iota { shape: turned::axes(shape, &self.order), axis: place_of(axis), elem: elem.clone() }
            }
            Op::Reduce { op, axis } => Op::Reduce { op: *op, axis: place_of(axis) },
            other => other.clone(),
        }
    }
}

/// Whether the elements of a tile of this shape have the same order when it is turned.
fn keeps_order(shape: &[Dim], order: &[usize]) -> bool {
    let longer = order.iter().filter(|&&axis| shape[axis].as_const() != Some(1));
    longer.is_sorted()
}
