//! Blocks that go on to further tiles, in an order in which those that run at one time need few rows and columns of the
//! factors.
//!
//! While the consumers of a pipeline finish a tile, the producer already copies for the next one. So a launch of such
//! a kernel starts as many blocks as run at once, and these share what the grid has. That must not be seen: it isn't
//! done where blocks may wait for each other, or where messages name them.
//!
//! A device whose parts have caches of their own gives successive blocks to one part after the other. There the blocks
//! of a part take successive places, in the same order.

use super::Pipelines;
use crate::dim::Dim;
use crate::kernel::{Kernel, OpId};
use crate::ops::Op;
use crate::schedule::TileOrder;
use crate::target::TargetDesc;

/// Tiles in a column of a band: with a wave of blocks about square, what a wave reads is least.
const BAND: i64 = 8;

/// The order in which blocks of a kernel share the places of its grid; `None` where each block has one.
pub(super) fn order(kernel: &Kernel, pipelines: &Pipelines) -> Option<TileOrder<Dim>> {
    if pipelines.is_empty() || is_seen(kernel) { None } else { banded(kernel) }
}

/// The order of the places of a grid in which successive ones go to blocks of one part of the device; `None` where the
/// device has no parts, or the kernel multiplies no matrices, whose factors neighbours share.
pub(super) fn order_in_parts(kernel: &Kernel, target: &TargetDesc) -> Option<TileOrder<Dim>> {
    let multiplies = kernel.walk().into_iter().any(|op| kernel.op(op).op == Op::Mma);
    if target.parts == 1 || !multiplies || is_seen(kernel) { None } else { banded(kernel) }
}

/// Whether it shows which block has which place.
fn is_seen(kernel: &Kernel) -> bool {
    let shows = |op: &Op| matches!(op, Op::Tiles(_) | Op::Atomic(_) | Op::Print { .. } | Op::Assert { .. });
    kernel.walk().into_iter().any(|op| shows(&kernel.op(op).op))
}

/// Whether blocks may take places of the grid in pairs: also those of a kernel that says itself how its blocks share
/// tiles, if what a block carries from one of its tiles to the next isn't seen, nor its number.
pub(super) fn may_pair(kernel: &Kernel) -> bool {
    let is_persistent = kernel.is_persistent();
    let shows = |op: OpId| {
        let data = kernel.op(op);
        match data.op {
            Op::Atomic(_) | Op::Print { .. } | Op::Assert { .. } => true,
            Op::Tiles(_) => !data.results.is_empty(),
            Op::BlockId { .. } | Op::BlockCount { .. } => is_persistent,
            _ => false,
        }
    };
    !kernel.walk().into_iter().any(shows)
}

fn banded(kernel: &Kernel) -> Option<TileOrder<Dim>> {
    let space = kernel.grid_space()?;
    let is_column = space.last().and_then(Dim::as_const) == Some(1);
    Some(if is_column { TileOrder::RowMajor } else { TileOrder::Grouped(Dim::from(BAND)) })
}
