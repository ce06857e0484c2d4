//! Pairs of blocks that copy for each other.
//!
//! Blocks whose tiles are neighbours along an axis of the grid read the same tiles of a factor whose place doesn't depend
//! on that axis. Run together, as a cluster of two, each copies half of such a tile, to the shared memory of both (PTX
//! ISA, "cp.async.bulk.tensor" with `.multicast::cluster`): what they share is read once, from the L2 cache and from
//! memory. Both must come to each of these copies, so the loops around them have as many turns in one as in the other,
//! and both take the same branches.
//!
//! It is done where the kernel says that its blocks are pairs ([`Kernel::pairs`]), for loops with one product: in a loop
//! with several, each product's tiles would be left by both blocks apart from the other's.

use super::factor::{Factor, Factors};
use super::obstacle::Obstacles;
use super::shared_tile::SharedTile;
use super::slice::is_same_of_one;
use crate::analysis::uses::Uses;
use crate::gpu::numbers::Numbers;
use crate::gpu::rewrites::persistent::may_pair;
use crate::gpu::rewrites::stacks;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use crate::target::TargetDesc;
use std::collections::{HashMap, HashSet};

/// Blocks of a pair.
pub const PAIR: u64 = 2;

/// The axis along which pairs of blocks share most of what the kernel copies to rings; `None` where they would share
/// nothing, or where which block has which tile is seen.
pub fn axis(kernel: &Kernel, target: &TargetDesc) -> Option<usize> {
    let kernel = &*stacks::all(kernel, target);
    if target.warpgroup_matrix.is_empty() || !may_pair(kernel) {
        return None;
    }
    let numbers = Numbers::of(kernel);
    let uses = Uses::of(kernel);
    let factors = Factors::of(&numbers, &uses, target, &mut Obstacles::default()).in_rings;
    let space = kernel.grid_space()?;
    // Where it is known that an axis has an odd number of tiles, as where it has one, no launch has pairs along it.
    let may_be_even = |&axis: &usize| space[axis].as_const().is_none_or(|tiles| tiles % 2 == 0);
    let mut best = None;
    for axis in (0..space.len()).filter(may_be_even) {
        let shared = shared(kernel, &factors, axis);
        let own = factors.iter().filter(|factor| shared.contains(&factor.load));
        let bytes = own.map(|factor| factor.copyable.tile.bytes());
        let bytes: u64 = bytes.sum();
        if bytes > best.map_or(0, |(_, most)| most) {
            best = Some((axis, bytes));
        }
    }
    best.map(|(axis, _)| axis)
}

/// The loads whose tiles both blocks of a kernel's pairs read, and halves of which are copied by each.
pub(super) fn shared_by_pairs(kernel: &Kernel, factors: &[Factor]) -> HashSet<OpId> {
    let rank = kernel.grid_space().map_or(0, |space| space.len());
    match kernel.pairs.filter(|&axis| axis < rank && may_pair(kernel)) {
        Some(axis) => shared(kernel, factors, axis),
        None => HashSet::new(),
    }
}

/// The loads whose tiles both blocks of a pair along an axis read in every turn, and halves of which can be copied.
fn shared(kernel: &Kernel, factors: &[Factor], axis: usize) -> HashSet<OpId> {
    let dependence = Dependence::of(kernel);
    let same = |value: ValueId| !dependence.is_on(value, axis);
    let is_taken_alike = |op: OpId| {
        let data = kernel.op(op);
        let deciding = if data.op == Op::For { &data.operands[..2] } else { &data.operands };
        deciding.iter().all(|&number| same(number))
    };
    let around = |op: OpId| {
        let is_around =
            |&outer: &OpId| matches!(kernel.op(outer).op, Op::For | Op::If) && kernel.stands_in(op, outer);
        kernel.walk().into_iter().filter(is_around).collect::<Vec<_>>()
    };
    let alike = factors.iter().all(|factor| {
        let mut of_turn = factors.iter().filter(|other| other.turn == factor.turn);
        let has_one_product = of_turn.all(|other| other.id.product == factor.id.product);
        has_one_product && around(factor.id.product).into_iter().all(is_taken_alike)
    });
    if !alike {
        return HashSet::new();
    }
    let is_shared = |factor: &&Factor| {
        let load = kernel.op(factor.load).load().expect("a factor is loaded");
        let has_halves = !factor.is_loaded_before() && has_halves(&factor.copyable.tile);
        has_halves && load.index.iter().all(|&index| same(index))
    };
    factors.iter().filter(is_shared).map(|factor| factor.load).collect()
}

/// Whether half of a tile's rows are whole patterns of its swizzle.
fn has_halves(tile: &SharedTile) -> bool {
    (tile.panel_bytes() / PAIR).is_multiple_of(tile.pattern_bytes())
}

/// Whether an op reads nothing but what its operands say: a view, or a tile of a tensor that nobody writes.
fn is_unwritten(kernel: &Kernel, data: &OpData) -> bool {
    let is_read_only =
        |view: ValueId| kernel.ty(view).as_partition().is_some_and(|view| !view.tensor.mutable);
    match data.op {
        Op::View(_) | Op::Partition(_) | Op::GatherLoad => true,
        _ => data.load().is_some_and(|load| is_read_only(load.view)),
    }
}

/// On which places of the block's tile in the grid numbers depend, a bit per axis.
struct Dependence(HashMap<ValueId, u64>);

/// What isn't known to be the same in any two blocks.
const EVERYTHING: u64 = u64::MAX;

impl Dependence {
    fn of(kernel: &Kernel) -> Dependence {
        let mut found = Dependence(HashMap::new());
        // What loops carry comes around: until nothing is added. Axes are only ever added.
        loop {
            let before = found.0.clone();
            found.region(kernel, kernel.body());
            if found.0 == before {
                return found;
            }
        }
    }

    /// Whether a number may differ between blocks whose tiles differ along an axis alone.
    fn is_on(&self, value: ValueId, axis: usize) -> bool {
        self.on(value) >> axis & 1 == 1
    }

    fn on(&self, value: ValueId) -> u64 {
        self.0.get(&value).copied().unwrap_or(0)
    }

    fn all(&self, values: &[ValueId]) -> u64 {
        values.iter().fold(0, |axes, &value| axes | self.on(value))
    }

    fn add(&mut self, value: ValueId, axes: u64) {
        *self.0.entry(value).or_default() |= axes;
    }

    fn region(&mut self, kernel: &Kernel, region: RegionId) {
        for &op in &kernel.region(region).ops {
            let data = kernel.op(op);
            match &data.op {
                Op::BlockIndex => {
                    data.results.iter().enumerate().for_each(|(axis, &result)| self.add(result, 1 << axis));
                }
                Op::BlockId { axis } => self.add(data.results[0], 1 << axis),
                Op::BlockCount { .. } => self.add(data.results[0], 0),
                op if op.is_leaf() || is_same_of_one(op) || is_unwritten(kernel, data) => {
                    let axes = self.all(&data.operands);
                    data.results.iter().for_each(|&result| self.add(result, axes));
                }
                Op::If => {
                    let condition = self.all(&data.operands);
                    data.regions.iter().for_each(|&region| self.region(kernel, region));
                    let ends = data.regions.iter().filter_map(|&region| kernel.region(region).ops.last());
                    let ends: Vec<&OpData> = ends.map(|&end| kernel.op(end)).collect();
                    for (i, &result) in data.results.iter().enumerate() {
                        let given: Vec<ValueId> = ends.iter().map(|end| end.operands[i]).collect();
                        self.add(result, condition | self.all(&given));
                    }
                }
                Op::For => {
                    let (own, at) = (kernel.region(data.regions[0]), Carried::FOR);
                    let bounds = self.all(&data.operands[..2]);
                    self.add(own.params[0], bounds);
                    self.region(kernel, data.regions[0]);
                    let end =
                        own.ops.last().map(|&end| kernel.op(end)).expect("verified: a loop's region yields");
                    for (i, &result) in data.results.iter().enumerate() {
                        let axes = bounds | self.all(&[data.operands[at.initial + i], end.operands[i]]);
                        self.add(own.params[at.param + i], axes);
                        self.add(result, axes);
                    }
                }
                _ => {
                    let inner = data.regions.iter().flat_map(|&region| &kernel.region(region).params);
                    let inner: Vec<ValueId> = inner.copied().chain(data.results.iter().copied()).collect();
                    inner.into_iter().for_each(|value| self.add(value, EVERYTHING));
                    data.regions.iter().for_each(|&region| self.region(kernel, region));
                }
            }
        }
    }
}
