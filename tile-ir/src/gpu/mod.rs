//! The schedule of a kernel for a GPU: what every thread of a block does and holds. No LLVM, and no vendor: what
//! differs between targets is data of [`TargetDesc`].
//!
//! [`schedule`] is a list of steps (`scheduler.rs`) from an optimized instance to a [`Scheduled`] one, whose IR has a
//! [`Distribution`](tile_layout::linear::Distribution) for every tile, and
//! [`Op::ConvertLayout`](crate::ops::Op::ConvertLayout) where a tile is wanted in another than it has.
//!
//! Invariants of what is scheduled: every tile that isn't in a ring ([`pipeline`]) has a distribution over the threads of the block; the operands and
//! results of an elementwise op have the same one; a reduction's result has its operand's without the axis; a
//! broadcast's operand has its result's without the axes that it repeats; the permuted tile lies where its operand
//! does. Ops that exchange elements through shared memory take and give any.

mod access;
mod cluster;
mod copies;
mod exchange;
mod followers;
mod hinted;
mod laid_out;
mod layouts;
mod numbers;
mod occupancy;
mod parts;
pub mod pipeline;
mod print;
mod products;
mod remarks;
mod rewrites;
mod room;
mod scheduled;
mod scheduler;
mod threads;
mod verify;

pub(crate) use access::reach;
pub use access::{Access, NEAR_BYTES, TENSOR_ALIGNMENT};
pub use cluster::most_blocks;
pub use copies::{CopiedLoop, Copies, StageCopy};
pub use exchange::movement::{Coverage, Movement, Part};
pub use exchange::orders::Orders;
pub use exchange::reduction::{Reduction, members};
pub use exchange::scan::{Scan, Step};
pub use exchange::scratch::{Buffer, SCRATCH_ALIGNMENT};
pub use exchange::sorting::Sorting;
pub use exchange::swizzled::{MatrixMove, Read, Swizzled, WIDEST};
pub use exchange::ways::Way;
pub use pipeline::{Pipeline, Pipelines, pair_axis};
pub use print::print;
pub use products::Product;
pub use remarks::{Multiplied, Remark, RemarkKind};
pub use scheduled::Scheduled;
pub use threads::Threads;
pub use verify::{Broken, verify};

use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, ValueId};
use crate::specialize::Instance;
use crate::target::TargetDesc;
use crate::types::Type;
use laid_out::LaidOut;
use room::Room;
use scheduler::Scheduler;

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

/// Schedules an optimized instance for a target, in blocks of `threads` threads if that is given, and otherwise of as many as
/// it asks for itself ([`crate::ScheduleHint`]), if it does. Where it needs more shared memory than the target has
/// ([`Scheduled::shared_bytes`]), it does so however it is scheduled.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn schedule(instance: Instance, target: &TargetDesc, threads: Option<u32>) -> Scheduled {
    hinted::schedule(instance, target, threads.map(|count| Threads::of(count.into(), target)))
}

/// [`schedule`] that copies no tile ahead.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn schedule_without_copies(instance: Instance, target: &TargetDesc, threads: Option<u32>) -> Scheduled {
    let threads = threads.map(|count| Threads::of(count.into(), target));
    let threads = threads.or_else(|| hinted::threads(&instance, target));
    Scheduler { target, threads, room: Room { scratch: u64::MAX, ..Room::ALL } }.schedule(instance)
}

#[cfg(test)]
mod tests;
