//! The schedule of a kernel for a GPU: what every thread of a block does and holds. No LLVM, and no vendor: what
//! differs between targets is data of [`TargetDesc`].
//!
//! [`schedule`] is a list of steps from an optimized instance to a [`Scheduled`] one, whose IR has a
//! [`Distribution`] for every tile, and [`Op::ConvertLayout`] where a tile is wanted in
//! another than it has.
//!
//! Invariants of what is scheduled: every tile that isn't in a ring ([`pipeline`]) has a distribution over the threads of the block; the operands and
//! results of an elementwise op have the same one; a reduction's result has its operand's without the axis; a
//! broadcast's operand has its result's without the axes that it repeats; the permuted tile lies where its operand
//! does. Ops that exchange elements through shared memory take and give any.

mod access;
mod cluster;
mod copies;
mod exchange;
mod hinted;
mod layouts;
mod occupancy;
mod parts;
pub mod pipeline;
mod print;
mod products;
mod remarks;
mod rewrites;
mod room;
mod scheduled;
mod verify;

pub(crate) use access::reach;
pub use access::{Access, NEAR_BYTES, TENSOR_ALIGNMENT};
pub use copies::{CopiedLoop, Copies, StageCopy};
pub use exchange::movement::{Coverage, Movement, Part};
pub use exchange::orders::Orders;
pub use exchange::reduction::Reduction;
pub use exchange::scratch::{Buffer, SCRATCH_ALIGNMENT};
pub use exchange::sorting::Sorting;
pub use exchange::swizzled::{MatrixMove, Read, Swizzled, WIDEST};
pub use exchange::ways::Way;
pub use pipeline::{Pipeline, Pipelines, pair_axis};
pub use print::print;
pub use products::Product;
pub use remarks::Remark;
pub use scheduled::Scheduled;
pub use verify::{Broken, verify};

use crate::analysis::uses::Uses;
use crate::analysis::{Divisors, Facts, Lines};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::specialize::Instance;
use crate::target::TargetDesc;
use crate::types::Type;
use exchange::barriers::Barriers;
use exchange::movement::Moves;
use exchange::scratch::Scratch;
use layouts::Layouts;
use pipeline::Spare;
use room::Room;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use tile_layout::linear::Distribution;

/// Tiles of more elements than this get the larger block.
const SMALL_TILE: u64 = 1024;

/// Threads of a block that has a larger tile, and of one that hasn't.
const THREADS: [u64; 2] = [256, 128];

/// The threads that hold each tile: those of a block, or of the blocks of a cluster that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threads {
    /// Lanes that execute in lock-step: a power of two.
    pub lanes: u64,
    /// Warps of all blocks: a power of two.
    pub warps: u64,
    /// The blocks: a power of two.
    pub blocks: u64,
}

impl Threads {
    /// All of them.
    pub fn count(self) -> u64 {
        self.lanes * self.warps
    }

    /// Those of a block.
    pub fn of_block(self) -> u64 {
        self.count() / self.blocks
    }

    /// So many threads in warps of a target; fewer than a warp are its first lanes.
    ///
    /// # Panics
    /// If the number isn't a power of two.
    pub fn of(count: u64, target: &TargetDesc) -> Threads {
        assert!(count.is_power_of_two(), "a block has a power of two of threads, not {count}");
        let lanes = count.min(u64::from(target.warp));
        Threads { lanes, warps: count / lanes, blocks: 1 }
    }

    /// As many as a kernel's largest tile asks for, and no more than have work in its products.
    fn chosen(kernel: &Kernel, target: &TargetDesc) -> Threads {
        if let Some(count) = occupancy::threads(kernel, target) {
            return Threads::of(count, target);
        }
        let [large, small] = THREADS;
        let count = if largest_tile(kernel) > SMALL_TILE { large } else { small };
        let most = products::most_warps(kernel, target).map_or(count, |warps| warps * u64::from(target.warp));
        Threads::of(count.min(most).min(u64::from(target.max_threads)), target)
    }
}

/// Extents of a tile of an instance as numbers; `None` for what isn't a tile.
fn shape_of(kernel: &Kernel, value: ValueId) -> Option<Vec<u64>> {
    let Type::Tile(tile) = kernel.ty(value) else { return None };
    let extent = |dim: &Dim| dim.as_const().expect("an instance's tile extents are numbers") as u64;
    Some(tile.shape.iter().map(extent).collect())
}

/// Elements of the largest tile of an instance.
fn largest_tile(kernel: &Kernel) -> u64 {
    let tiles = kernel.value_ids().filter_map(|value| Some(shape_of(kernel, value)?.iter().product()));
    tiles.max().unwrap_or(0)
}

/// The format of an instance's value.
fn dtype_of(kernel: &Kernel, value: ValueId) -> DType {
    kernel.ty(value).elem().known().expect("an instance has no dtype parameters")
}

/// An instance whose tiles have distributions, and how they come to these.
#[derive(Clone, Debug)]
struct LaidOut {
    instance: Instance,
    distributions: HashMap<ValueId, Distribution>,
    accesses: HashMap<OpId, Access>,
    products: HashMap<OpId, Product>,
    ways: HashMap<OpId, Way>,
    staged: HashMap<OpId, OpId>,
    threads: Threads,
}

/// The parts of a schedule that say what goes through shared memory.
struct Parts<'s> {
    laid_out: &'s LaidOut,
    moves: &'s Moves,
    /// Tiles all of whose elements are one value.
    uniform: &'s HashSet<ValueId>,
    pipelines: &'s Pipelines,
    copies: &'s Copies,
}

impl Parts<'_> {
    fn kernel(&self) -> &Kernel {
        &self.laid_out.instance
    }
}

/// Schedules an optimized instance for a target, in blocks of `threads` threads if that is given, and otherwise of as many as
/// it asks for itself ([`crate::ScheduleHint`]), if it does. Where it needs more shared memory than the target has
/// ([`Scheduled::shared_bytes`]), it does so however it is scheduled.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn schedule(instance: Instance, target: &TargetDesc, threads: Option<u32>) -> Scheduled {
    hinted::in_shares(instance, target, threads.map(|count| Threads::of(count.into(), target)))
}

/// [`schedule`] for a block that has a target's shared memory to itself, or this part of it.
fn schedule_as(instance: Instance, target: &TargetDesc, given: Option<Threads>) -> Scheduled {
    let asked = hinted::threads(&instance, target);
    let threads = given.or(asked);
    let shared = if given.is_none() { cluster::threads(&instance, target, asked) } else { None };
    let shared = shared.map(|threads| schedule_from(instance.clone(), (target, Some(threads)), Room::ALL));
    match shared.filter(|shared| cluster::exchanges_reductions_alone(shared, &shared.scratch)) {
        Some(shared) => shared,
        None => schedule_from(instance, (target, threads), Room::ALL),
    }
}

/// [`schedule`] that copies no tile ahead.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn schedule_without_copies(instance: Instance, target: &TargetDesc, threads: Option<u32>) -> Scheduled {
    let threads = threads.map(|count| Threads::of(count.into(), target));
    let threads = threads.or_else(|| hinted::threads(&instance, target));
    schedule_from(instance, (target, threads), Room { scratch: u64::MAX, ..Room::ALL })
}

fn schedule_from(
    instance: Instance,
    (target, threads): (&TargetDesc, Option<Threads>),
    mut room: Room,
) -> Scheduled {
    let scaled = rewrites::scaled::found(&instance, target);
    let instance = match scaled.is_empty() {
        true => instance,
        false => instance.rewrite("scaled", |kernel| rewrites::scaled::run(kernel, &scaled)),
    };
    let narrower = rewrites::narrow::needed(&instance, target);
    let instance = match narrower.is_empty() {
        true => instance,
        false => instance.rewrite("narrow", |kernel| rewrites::narrow::run(kernel, &narrower)),
    };
    let widened = rewrites::widen::needed(&instance, target);
    let instance = match widened.is_empty() {
        true => instance,
        false => instance.rewrite("widen", |kernel| rewrites::widen::run(kernel, &widened)),
    };
    loop {
        let scheduled = schedule_in(instance.clone(), (target, threads), room);
        if scheduled.shared_bytes() <= u64::from(target.shared_bytes) {
            return with_next_tiles(scheduled, instance, (target, threads), room);
        }
        match room.tightened(&scheduled, target) {
            Some(tighter) => room = tighter,
            None => return scheduled,
        }
    }
}

/// The schedule that also has a next turn's tiles in shared memory that this one, which fits, leaves; this one where there
/// is no room for such.
fn with_next_tiles(
    scheduled: Scheduled,
    instance: Instance,
    (target, threads): (&TargetDesc, Option<Threads>),
    room: Room,
) -> Scheduled {
    if !scheduled.pipelines().wait_for_room(&scheduled) {
        return scheduled;
    }
    let more = schedule_in(instance, (target, threads), Room { spare: Spare::NextTiles, ..room });
    if more.shared_bytes() <= u64::from(target.shared_bytes) { more } else { scheduled }
}

/// The steps of a schedule.
fn schedule_in(instance: Instance, (target, given): (&TargetDesc, Option<Threads>), room: Room) -> Scheduled {
    let (instance, pipelines) = pipelined(instance, target, given, room);
    let order = rewrites::persistent::order(&instance, target, &pipelines);
    let shares_grid = order.is_some();
    let (instance, mut pipelines) = match order {
        Some(order) => {
            let instance = instance.rewrite("persistent", |kernel| rewrites::persistent::run(kernel, order));
            let pipelines = Pipelines::of(&instance, target, given, room);
            (instance, pipelines)
        }
        None => (instance, pipelines),
    };
    let found = |kernel: &Kernel| Pipelines::of(kernel, target, given, room);
    let obstacles = remarks::obstacles(&instance, target, &pipelines, found);
    let threads = match given {
        Some(threads) => threads,
        None if !pipelines.is_empty() => Threads::of(pipelines.consumers() * u64::from(target.warp), target),
        None => Threads::chosen(&instance, target),
    };
    let instance = instance.rewrite("masks", |kernel| rewrites::masks::run(kernel, &pipelines));
    let may_copy = target.asynchronous_copies && pipelines.is_empty() && rewrites::ahead::may_load(&instance);
    let copies = |laid_out: &LaidOut| match may_copy {
        true => Copies::of(laid_out, target, room.scratch),
        false => Copies::default(),
    };
    // Whether a tile can be copied is known when all tiles have distributions, and what can't is loaded ahead, which
    // comes before.
    let mut staying = match may_copy {
        true => copies(&LaidOut::of(instance.clone(), target, threads, &pipelines)).into_replaced(),
        false => HashSet::new(),
    };
    staying.extend(gathered_by_element(&instance, target));
    let instance =
        instance.rewrite("ahead", |kernel| rewrites::ahead::run(kernel, threads, &pipelines, &staying));
    let mut laid_out = LaidOut::of(instance, target, threads, &pipelines);
    let copies = copies(&laid_out);
    exchange::ways::in_rounds(&mut laid_out, room.conversion);
    pipelines.find_roles(&laid_out.instance);
    pipelines.find_late(&laid_out);
    pipelines.keep_stores(&laid_out, target);
    let order_in_parts = parts::order(&laid_out.instance, target);
    let moves = Moves::of(&laid_out.instance, &laid_out.distributions);
    let uniform = exchange::uniform::uniform(&laid_out, &moves);
    let parts = Parts {
        laid_out: &laid_out,
        moves: &moves,
        uniform: &uniform,
        pipelines: &pipelines,
        copies: &copies,
    };
    let scratch = Scratch::of(&parts, u64::from(target.shared_bytes));
    let barriers = Barriers::of(&parts, &scratch);
    let ordering_tensors = exchange::orders::ordering_tensors(&laid_out.instance);
    let remarks = remarks::remarks(&laid_out, target, &copies, &obstacles);
    let blocks_at_once = occupancy::blocks(&laid_out, target);
    let scheduled = Scheduled {
        laid_out,
        blocks_at_once,
        moves,
        uniform,
        pipelines,
        copies,
        shares_grid,
        order_in_parts,
        scratch,
        barriers,
        ordering_tensors,
        remarks,
        sends: target.sends,
        float8_conversions: target.float8_conversions,
    };
    debug_assert_eq!(verify(&scheduled), Ok(()), "{}", print(&scheduled));
    scheduled
}

/// An instance with its pipelines, whose products keep the precision of their sums.
fn pipelined(
    instance: Instance,
    target: &TargetDesc,
    threads: Option<Threads>,
    room: Room,
) -> (Instance, Pipelines) {
    let found = |kernel: &Kernel| Pipelines::of(kernel, target, threads, room);
    if target.has_tensor_memory() {
        return with_sums_in_tensor_memory(instance, target, found);
    }
    let instance = match rewrites::stacks::copied(&instance, target, found) {
        Cow::Borrowed(_) => instance,
        Cow::Owned(stacked) => instance.rewrite("stacks", |kernel| *kernel = stacked),
    };
    let pipelines = found(&instance);
    let coarse = |op: &OpId| rewrites::promote::is_needed(&instance, &pipelines, *op);
    let coarse: Vec<OpId> = instance.walk().into_iter().filter(coarse).collect();
    if coarse.is_empty() {
        return (instance, pipelines);
    }
    let instance = instance.rewrite("promote", |kernel| rewrites::promote::run(kernel, &coarse));
    let pipelines = found(&instance);
    (instance, pipelines)
}

/// An instance with its pipelines, where the sums of products lie in tensor memory.
fn with_sums_in_tensor_memory(
    instance: Instance,
    target: &TargetDesc,
    found: impl Fn(&Kernel) -> Pipelines,
) -> (Instance, Pipelines) {
    let stacked = |instance: Instance| match rewrites::stacks::copied(&instance, target, &found) {
        Cow::Borrowed(_) => instance,
        Cow::Owned(stacked) => instance.rewrite("stacks", |kernel| *kernel = stacked),
    };
    let changed = pipeline::changed_by_threads(&instance, &Uses::of(&instance));
    if !changed.is_empty() {
        let added =
            stacked(instance.clone().rewrite("promote", |kernel| rewrites::promote::run(kernel, &changed)));
        let pipelines = found(&added);
        // Where there are none, what keeps them is told of the kernel as it is.
        return if pipelines.is_empty() { (instance, pipelines) } else { (added, pipelines) };
    }
    let instance = stacked(instance);
    let pipelines = found(&instance);
    (instance, pipelines)
}

impl LaidOut {
    fn of(instance: Instance, target: &TargetDesc, threads: Threads, pipelines: &Pipelines) -> LaidOut {
        let (accesses, products) =
            (accesses(&instance, target), products::products(&instance, target, threads, pipelines));
        let runs = layouts::runs(&instance, (threads, target), &accesses, &products, pipelines);
        let mut distributions = HashMap::new();
        let instance = instance.rewrite("layouts", |kernel| {
            distributions = Layouts::assign(kernel, threads, (&accesses, &runs), (&products, pipelines));
        });
        let ways = exchange::ways::ways(&instance, &distributions, target);
        let staged = exchange::ways::staged(&instance, &ways, &products, pipelines);
        LaidOut { instance, distributions, accesses, products, ways, staged, threads }
    }

    fn dtype(&self, value: ValueId) -> DType {
        dtype_of(&self.instance, value)
    }

    /// The bytes of a tile.
    fn bytes(&self, tile: ValueId) -> u64 {
        self.distributions[&tile].shape().iter().product::<u64>() * self.dtype(tile).bytes() as u64
    }

    /// How a [`Op::Reduce`] is done.
    fn reduction(&self, data: &OpData) -> Reduction<'_> {
        let Op::Reduce { op, axis } = data.op else { unreachable!("it is asked of reductions alone") };
        let (operand, result) = (data.operands[0], data.results[0]);
        let places = (&self.distributions[&operand], &self.distributions[&result]);
        Reduction::of(places, (self.dtype(operand), self.threads), (op, axis))
    }

    /// Whether blocks of a cluster send each other what a reduction joins of each ([`cluster::sends`]).
    fn is_sent(&self, op: OpId) -> bool {
        cluster::sends(self, op)
    }

    /// How a [`Op::Sort`] is done.
    fn sorting(&self, data: &OpData) -> Sorting {
        let Op::Sort { axis, .. } = data.op else { unreachable!("it is asked of sorts alone") };
        let shape = |tile| self.distributions[&tile].shape();
        let (extents, kept) = (shape(data.operands[0]), shape(data.results[0])[axis]);
        let lines = extents.iter().product::<u64>() / extents[axis];
        Sorting::of((lines, extents[axis], kept), self.dtype(data.operands[0]), self.threads)
    }
}

/// The gathers that load no neighbours together.
fn gathered_by_element(kernel: &Kernel, target: &TargetDesc) -> Vec<OpId> {
    let ops = kernel.walk().into_iter();
    let gathers: Vec<OpId> = ops.filter(|&op| kernel.op(op).op == Op::GatherLoad).collect();
    if gathers.is_empty() {
        return gathers;
    }
    let accesses = accesses(kernel, target);
    let by_element = |op: &OpId| accesses.get(op).is_none_or(|access| access.vector == 1);
    gathers.into_iter().filter(by_element).collect()
}

fn accesses(kernel: &Kernel, target: &TargetDesc) -> HashMap<OpId, Access> {
    let (divisors, facts) = (Divisors::of(kernel), Facts::of(kernel));
    let mut lines = Lines::of(kernel, &divisors);
    let known = (&divisors, &facts);
    let access = |op: OpId| {
        let access = match &kernel.op(op).op {
            Op::GatherLoad => Access::of_gather(kernel, known, &mut lines, op)?,
            Op::Atomic(_) => Access::of_scatter(kernel, known, &mut lines, (op, target))?,
            kind if kind.is_load() || kind.is_store() => Access::of(kernel, known, op),
            _ => return None,
        };
        Some((op, access.on(target)))
    };
    kernel.walk().into_iter().filter_map(access).collect()
}

#[cfg(test)]
mod tests;
