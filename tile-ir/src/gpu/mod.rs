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
mod ahead;
mod copies;
mod layouts;
pub mod pipeline;
mod print;
mod products;
mod share;
mod swizzled;
mod uses;
mod verify;
mod ways;

pub use access::{Access, TENSOR_ALIGNMENT};
pub use copies::{CopiedLoop, Copies, StageCopy};
pub use pipeline::{Pipeline, Pipelines};
pub use print::print;
pub use products::Product;
pub use swizzled::{MatrixLoad, Read, Swizzled, WIDEST};
pub use verify::{Broken, verify};
pub use ways::Way;

use crate::analysis::divisibility::Divisors;
use crate::analysis::facts::Facts;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::loc::Loc;
use crate::ops::Op;
use crate::schedule::TileOrder;
use crate::specialize::Instance;
use crate::target::TargetDesc;
use crate::tensor_map::TensorMap;
use crate::types::Type;
use layouts::Layouts;
use std::collections::{HashMap, HashSet};
use tile_layout::linear::Distribution;

/// Tiles of more elements than this get the larger block.
const SMALL_TILE: u64 = 1024;

/// Threads of a block that has a larger tile, and of one that hasn't.
const THREADS: [u64; 2] = [256, 128];

/// The threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threads {
    /// Lanes that execute in lock-step: a power of two.
    pub lanes: u64,
    /// Warps: a power of two.
    pub warps: u64,
}

impl Threads {
    /// All of them.
    pub fn count(self) -> u64 {
        self.lanes * self.warps
    }

    /// So many threads in warps of a target; fewer than a warp are its first lanes.
    ///
    /// # Panics
    /// If the number isn't a power of two.
    pub fn of(count: u64, target: &TargetDesc) -> Threads {
        assert!(count.is_power_of_two(), "a block has a power of two of threads, not {count}");
        let lanes = count.min(u64::from(target.warp));
        Threads { lanes, warps: count / lanes }
    }

    /// As many as a kernel's largest tile asks for, and no more than have work in its products.
    fn chosen(kernel: &Kernel, target: &TargetDesc) -> Threads {
        let largest = kernel.value_ids().filter_map(|value| Some(shape_of(kernel, value)?.iter().product()));
        let [large, small] = THREADS;
        let count = if largest.max().unwrap_or(0) > SMALL_TILE { large } else { small };
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

/// The format of an instance's value.
fn dtype_of(kernel: &Kernel, value: ValueId) -> DType {
    kernel.ty(value).elem().known().expect("an instance has no dtype parameters")
}

/// What a person should know of a schedule: why it isn't what they may expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The op.
    pub loc: Loc,
    /// The reason, and what to do about it.
    pub message: String,
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
}

/// An instance with what every thread does and holds. Only [`schedule`] makes one.
#[derive(Clone, Debug)]
pub struct Scheduled {
    laid_out: LaidOut,
    threads: Threads,
    pipelines: Pipelines,
    copies: Copies,
    order: Option<TileOrder<Dim>>,
    order_in_parts: Option<TileOrder<Dim>>,
    remarks: Vec<Remark>,
}

impl std::ops::Deref for Scheduled {
    type Target = Instance;
    fn deref(&self) -> &Instance {
        &self.laid_out.instance
    }
}

impl Scheduled {
    /// The threads of a block that hold tiles.
    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// All threads of a block: those that hold tiles, and then those that copy them to shared memory.
    pub fn block_threads(&self) -> u64 {
        self.threads.count() + self.pipelines.producers()
    }

    /// The loops whose tiles a producer copies ahead.
    pub fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    /// The loops whose tiles the threads that hold the others copy ahead.
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// Shared memory of the tiles that are copied ahead, in bytes.
    pub fn copied_bytes(&self) -> u64 {
        self.pipelines.bytes() + self.copies.bytes()
    }

    /// The order in which blocks share the places of the grid; `None` where each has one.
    pub fn order(&self) -> Option<&TileOrder<Dim>> {
        self.order.as_ref()
    }

    /// The order of the places of the grid of which the blocks of a part of the device take successive ones; `None`
    /// where the block's number is the place's.
    pub fn order_in_parts(&self) -> Option<&TileOrder<Dim>> {
        self.order_in_parts.as_ref()
    }

    /// How the elements of a tile lie in the threads.
    ///
    /// # Panics
    /// If the value isn't a tile, or lies in a ring.
    pub fn distribution(&self, tile: ValueId) -> &Distribution {
        self.laid_out.distributions.get(&tile).expect("scheduled: a tile in threads has a distribution")
    }

    /// The format of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        dtype_of(self, value)
    }

    /// How an `mma` is done by matrix instructions; `None` where it is done by multiply-adds.
    pub fn product(&self, op: OpId) -> Option<&Product> {
        self.laid_out.products.get(&op)
    }

    /// The tensors of which boxes are copied, in the order of the kernel's parameters for them.
    pub fn tensor_maps(&self) -> &[TensorMap] {
        self.pipelines.maps()
    }

    /// What a person should know of it.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// How the elements of a `convert_layout` get where they are wanted.
    ///
    /// # Panics
    /// If the op is another.
    pub fn way(&self, op: OpId) -> &Way {
        self.laid_out.ways.get(&op).expect("scheduled: every conversion has a way")
    }

    /// The product that reads what a `convert_layout` leaves in shared memory; `None` where registers get it at once.
    pub fn staged_for(&self, op: OpId) -> Option<OpId> {
        self.laid_out.staged.get(&op).copied()
    }

    /// How an op that loads or stores a tile reaches memory.
    ///
    /// # Panics
    /// If the op isn't a load or store of a partition view.
    pub fn access(&self, op: OpId) -> &Access {
        self.laid_out.accesses.get(&op).expect("scheduled: every load and store has an access")
    }
}

/// Schedules an optimized instance for a target, in blocks of `threads` threads if that is given.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn schedule(instance: Instance, target: &TargetDesc, threads: Option<u32>) -> Scheduled {
    schedule_leaving(instance, target, threads, 0)
}

/// [`schedule`] whose tiles that are copied ahead leave so many bytes of shared memory for what threads exchange.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn schedule_leaving(
    instance: Instance,
    target: &TargetDesc,
    threads: Option<u32>,
    scratch_bytes: u64,
) -> Scheduled {
    let threads = threads.map(|count| Threads::of(u64::from(count), target));
    let mut pipelines = Pipelines::of(&instance, target, threads, scratch_bytes);
    let threads = match threads {
        Some(threads) => threads,
        None if !pipelines.is_empty() => Threads::of(pipelines.consumers() * u64::from(target.warp), target),
        None => Threads::chosen(&instance, target),
    };
    let may_copy = target.asynchronous_copies && pipelines.is_empty() && ahead::may_load(&instance);
    let copies = |laid_out: &LaidOut| match may_copy {
        true => Copies::of(laid_out, target, scratch_bytes),
        false => Copies::default(),
    };
    // Whether a tile can be copied is known when all tiles have distributions, and what can't is loaded ahead, which
    // comes before.
    let copied = match may_copy {
        true => copies(&LaidOut::of(instance.clone(), target, threads, &pipelines)).into_replaced(),
        false => HashSet::new(),
    };
    let instance = instance.rewrite("ahead", |kernel| ahead::run(kernel, threads, &pipelines, &copied));
    let laid_out = LaidOut::of(instance, target, threads, &pipelines);
    let copies = copies(&laid_out);
    pipelines.keep_stores(|op, store| {
        let tile = &laid_out.distributions[&laid_out.instance.op(op).operands[1]];
        laid_out.products.values().any(|product| store.takes(tile, product))
    });
    let order = share::order(&laid_out.instance, &pipelines);
    let order_in_parts = share::order_in_parts(&laid_out.instance, target);
    let remarks = remarks(&laid_out.instance, target, &laid_out.products);
    let scheduled = Scheduled { laid_out, threads, pipelines, copies, order, order_in_parts, remarks };
    debug_assert_eq!(verify(&scheduled), Ok(()), "{}", print(&scheduled));
    scheduled
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
        let ways = ways::ways(&instance, &distributions, target);
        let staged = ways::staged(&instance, &ways, &products);
        LaidOut { instance, distributions, accesses, products, ways, staged }
    }
}

fn remarks(kernel: &Kernel, target: &TargetDesc, products: &HashMap<OpId, Product>) -> Vec<Remark> {
    let slow = |op: &OpId| kernel.op(*op).op == Op::Mma && !products.contains_key(op);
    let slow = kernel.walk().into_iter().filter(slow).filter(|_| !target.matrix.is_empty());
    slow.map(|op| products::remark(kernel, kernel.op(op), target)).collect()
}

fn accesses(kernel: &Kernel, target: &TargetDesc) -> HashMap<OpId, Access> {
    let (divisors, facts) = (Divisors::of(kernel), Facts::of(kernel));
    let ops =
        kernel.walk().into_iter().filter(|&op| kernel.op(op).op.is_load() || kernel.op(op).op.is_store());
    ops.map(|op| (op, Access::of(kernel, (&divisors, &facts), op).on(target))).collect()
}

#[cfg(test)]
mod tests;
