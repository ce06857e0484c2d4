//! Loops over products whose tiles every thread copies to shared memory, some turns ahead.
//!
//! A tile that goes from memory to a product by way of shared memory needn't pass through registers: an instruction
//! copies a group of its elements to where they would be written, and the thread goes on. Shared memory has room for
//! the tiles of several turns, a ring of stages: while one is read, the copies of the next ones are under way. Unlike
//! in a [`Pipeline`](super::Pipeline) the threads that hold the sums copy too, and tiles lie as their `convert_layout`
//! wants it ([`Swizzled`]).
//!
//! A load is copied where its thread would move a group of elements from one aligned place to another, unchanged:
//! nothing but a staged conversion uses the tile, elements that don't exist are zeros, and the kernel doesn't write the
//! tensor. So is a gather of rows whose indices follow the counter ([`followers`]): every thread computes those of its
//! groups for the turn that it copies for, of which it holds what they need.

use super::exchange::movement::Movement;
use super::followers::{Follower, addresses, followers, unused};
use super::{LaidOut, SCRATCH_ALIGNMENT, Swizzled, Way, dtype_of, shape_of};
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::schedule_hints::{LEAST_STAGES, ScheduleHint};
use crate::target::TargetDesc;
use std::collections::{HashMap, HashSet};
use tile_layout::linear::Distribution;

/// The most stages, where the author doesn't say: what hides the way to memory and back.
const USUAL_STAGES: u64 = 4;

/// What one instruction copies, in bytes (PTX ISA, "cp.async").
const GROUP_BYTES: [u64; 3] = [4, 8, 16];

/// A loop whose tiles are copied ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedLoop {
    /// Turns whose tiles there is room for.
    pub stages: u64,
    /// Bytes of a stage.
    pub stage_bytes: u64,
    /// The ops of the loop that compute of a turn's number where gathered tiles come from, in their order. No thread needs
    /// what another one holds for them.
    pub address: Vec<OpId>,
    /// What is copied in a turn.
    pub copies: Vec<StageCopy>,
}

impl CopiedLoop {
    /// The shared memory of its stages, in bytes.
    pub fn bytes(&self) -> u64 {
        self.stages * self.stage_bytes
    }
}

/// The copy of a tile to a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCopy {
    /// The load that it stands for.
    pub load: OpId,
    /// The conversion whose shared memory it fills. Slot for slot its operand is the loaded tile.
    pub convert: OpId,
    /// Elements of a group: neighbouring slots, which lie next to each other in memory and in shared memory.
    pub group: u64,
    /// Where it begins in a stage, in bytes.
    pub offset: u64,
    /// What needn't be done: the load, the conversion, and what only gives the tile another shape in between.
    replaced: Vec<OpId>,
}

/// The loops of a kernel whose tiles are copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    loops: HashMap<OpId, CopiedLoop>,
    /// The loops, in the order in which they stand.
    order: Vec<OpId>,
    replaced: HashSet<OpId>,
    bytes: u64,
}

impl Copies {
    /// The copies of a kernel in blocks of a target that has asynchronous copies, with so much shared memory left for what threads exchange.
    pub(super) fn of(laid_out: &LaidOut, target: &TargetDesc, scratch_bytes: u64) -> Copies {
        let mut copies = Copies::default();
        let available = u64::from(target.shared_bytes).saturating_sub(scratch_bytes);
        let most_stages = laid_out.instance.hints.of(ScheduleHint::Stages).unwrap_or(USUAL_STAGES);
        let finder = Finder { laid_out, kernel: &laid_out.instance, uses: Uses::of(&laid_out.instance) };
        for op in finder.kernel.walk().into_iter().filter(|&op| finder.kernel.op(op).op == Op::For) {
            let room = available - copies.around(finder.kernel, op);
            copies.add(op, finder.found(op), room, most_stages);
        }
        let bytes = |(&op, copied): (&OpId, &CopiedLoop)| copied.bytes() + copies.around(finder.kernel, op);
        copies.bytes = copies.loops.iter().map(bytes).max().unwrap_or(0);
        copies
    }

    /// Adds the copies of a loop, of so many stages at most, as have room in these bytes.
    fn add(&mut self, op: OpId, found: Found, available: u64, most_stages: u64) {
        let Found { mut copies, address, unused } = found;
        let mut stage_bytes = 0;
        for (copy, bytes) in &mut copies {
            copy.offset = stage_bytes;
            stage_bytes += bytes.next_multiple_of(SCRATCH_ALIGNMENT);
        }
        let stages = available.checked_div(stage_bytes).unwrap_or(0).min(most_stages);
        if stages < LEAST_STAGES {
            return;
        }
        let copies: Vec<StageCopy> = copies.into_iter().map(|(copy, _)| copy).collect();
        self.replaced.extend(copies.iter().flat_map(|copy| &copy.replaced).chain(&unused));
        self.loops.insert(op, CopiedLoop { stages, stage_bytes, address, copies });
        self.order.push(op);
    }

    /// Bytes of the stages of loops that an op stands in.
    fn around(&self, kernel: &Kernel, op: OpId) -> u64 {
        let around = self.loops.iter().filter(|&(&outer, _)| kernel.stands_in(op, outer));
        around.map(|(_, copied)| copied.bytes()).sum()
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// What is copied in the turns of a loop; `None` where nothing is.
    pub fn of_loop(&self, op: OpId) -> Option<&CopiedLoop> {
        self.loops.get(&op)
    }

    /// The loops, in the order in which they stand.
    pub fn loops(&self) -> impl Iterator<Item = (OpId, &CopiedLoop)> {
        self.order.iter().map(|&op| (op, &self.loops[&op]))
    }

    /// The copy that a load stands for, with its loop.
    pub fn copy(&self, load: OpId) -> Option<(&CopiedLoop, &StageCopy)> {
        let copies =
            self.loops.values().flat_map(|copied| copied.copies.iter().map(move |copy| (copied, copy)));
        copies.into_iter().find(|(_, copy)| copy.load == load)
    }

    /// The loop in whose turns a conversion's shared memory is filled by copies.
    pub(super) fn loop_of(&self, convert: OpId) -> Option<OpId> {
        let fills = |copied: &CopiedLoop| copied.copies.iter().any(|copy| copy.convert == convert);
        self.loops.iter().find(|(_, copied)| fills(copied)).map(|(&op, _)| op)
    }

    /// Whether copies do what an op does.
    pub fn replace(&self, op: OpId) -> bool {
        self.replaced.contains(&op)
    }

    /// Whether an op is done for the turn that is copied, and for no other.
    pub(super) fn is_ahead(&self, op: OpId) -> bool {
        self.replace(op) && self.loops.values().any(|copied| copied.address.contains(&op))
    }

    /// The ops that copies stand for.
    pub(super) fn into_replaced(self) -> HashSet<OpId> {
        self.replaced
    }

    /// Changes every loop.
    #[cfg(test)]
    pub(super) fn change(&mut self, change: &dyn Fn(&mut CopiedLoop)) {
        self.loops.values_mut().for_each(change);
    }

    /// The most shared memory that stages take at a time, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What can be copied in a loop's turns.
struct Found {
    /// The copies of a turn, each with the bytes of its tile.
    copies: Vec<(StageCopy, u64)>,
    /// See [`CopiedLoop::address`].
    address: Vec<OpId>,
    /// What of that nothing else needs.
    unused: Vec<OpId>,
}

/// Finds what can be copied.
struct Finder<'k> {
    laid_out: &'k LaidOut,
    kernel: &'k Kernel,
    uses: Uses,
}

impl Finder<'_> {
    /// What of a loop's turn can be copied.
    fn found(&self, for_op: OpId) -> Found {
        let region = self.kernel.op(for_op).regions[0];
        let body = &self.kernel.region(region).ops;
        let stays = |(copy, _): &(StageCopy, u64)| copy.replaced.iter().all(|op| body.contains(op));
        let (mut copies, mut copied) = (Vec::new(), Vec::new());
        for follower in followers(self.kernel, region) {
            let Some(copy) = self.copy(&follower).filter(stays) else { continue };
            copies.push(copy);
            copied.push(follower);
        }
        let loads: Vec<OpId> = copied.iter().map(|follower| follower.load).collect();
        let address = addresses(self.kernel, region, &copied);
        let unused = unused(self.kernel, &self.uses, &address, &loads);
        Found { copies, address, unused }
    }

    fn copy(&self, follower: &Follower) -> Option<(StageCopy, u64)> {
        let load = follower.load;
        if self.pad(load).is_some_and(|pad| !self.kernel.is_zero(pad)) {
            return None;
        }
        let tile = self.kernel.op(load).results[0];
        let replaced = self.way_of(load, tile)?;
        let convert = *replaced.last()?;
        let swizzled = self.staged(convert)?;
        let access = self.laid_out.accesses.get(&load)?;
        let neighbours = self.laid_out.distributions[&tile].neighbours(*access.order.first()?);
        let element = dtype_of(self.kernel, tile).bytes() as u64;
        let group = swizzled.write;
        let fits = neighbours.min(access.vector) >= group && GROUP_BYTES.contains(&(group * element));
        let bytes = shape_of(self.kernel, tile)?.iter().product::<u64>() * element;
        let is_own = follower.address.iter().all(|&op| self.is_own(op));
        (fits && is_own).then_some((StageCopy { load, convert, group, offset: 0, replaced }, bytes))
    }

    /// What a load or gather gives in place of elements that don't exist, if some may not.
    fn pad(&self, load: OpId) -> Option<ValueId> {
        let data = self.kernel.op(load);
        match data.op {
            Op::GatherLoad => Some(data.operands[1]),
            _ => data.load().and_then(|load| load.pad),
        }
    }

    /// Whether every thread holds what it needs of an op's operands.
    fn is_own(&self, op: OpId) -> bool {
        let (data, found) = (self.kernel.op(op), &self.laid_out.distributions);
        match &data.op {
            Op::Reshape(_) => self.keeps_slots(data),
            _ => Movement::of(found, data).is_none_or(|movement| !movement.is_exchanged(0)),
        }
    }

    /// The layout in shared memory of a conversion that a product reads from there.
    fn staged(&self, convert: OpId) -> Option<&Swizzled> {
        let is_staged = self.laid_out.staged.contains_key(&convert);
        match self.laid_out.ways.get(&convert)? {
            Way::Swizzled(swizzled) if is_staged && swizzled.keeps_order() => Some(swizzled),
            _ => None,
        }
    }

    /// The ops from a load to the conversion of its tile, by ways that move no element of a slot and that nobody else
    /// goes.
    fn way_of(&self, load: OpId, tile: ValueId) -> Option<Vec<OpId>> {
        let (mut value, mut ops) = (tile, vec![load]);
        loop {
            let user = self.uses.only(value)?;
            let data = self.kernel.op(user);
            ops.push(user);
            match data.op {
                Op::ConvertLayout => return Some(ops),
                Op::Permute(_) => {}
                Op::Reshape(_) if self.keeps_slots(data) => {}
                _ => return None,
            }
            value = data.results[0];
        }
    }

    /// Whether each slot of a reshaped tile is the operand's.
    fn keeps_slots(&self, data: &OpData) -> bool {
        let of = |value| &self.laid_out.distributions[&value];
        let (from, to) = (of(data.operands[0]), of(data.results[0]));
        let number = |distribution: &Distribution, slot| {
            let place = distribution.place(slot, 0);
            place.iter().zip(distribution.shape()).fold(0, |number, (place, extent)| number * extent + place)
        };
        from.reshaped(to.shape()).as_ref() == Some(to)
            && from.slots() == to.slots()
            && (0..from.slots()).all(|slot| number(from, slot) == number(to, slot))
    }
}
