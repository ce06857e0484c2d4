//! Blocks that go on to further tiles, in an order in which those that run at one time need few rows and columns of the
//! factors.
//!
//! While the consumers of a pipeline finish a tile, the producer already copies for the next one. So a launch of such
//! a kernel starts as many blocks as run at once, and these share what the grid has. That must not be seen: it isn't
//! done where blocks may wait for each other, or where messages name them.

use super::Pipelines;
use crate::dim::Dim;
use crate::kernel::Kernel;
use crate::ops::Op;
use crate::schedule::TileOrder;

/// Tiles in a column of a band: with a wave of blocks about square, what a wave reads is least.
const BAND: i64 = 8;

/// The order in which blocks of a kernel share the places of its grid; `None` where each block has one.
pub(super) fn order(kernel: &Kernel, pipelines: &Pipelines) -> Option<TileOrder<Dim>> {
    let is_seen = |op: &Op| matches!(op, Op::Tiles(_) | Op::Atomic(_) | Op::Print { .. } | Op::Assert { .. });
    let ops = kernel.walk();
    if pipelines.is_empty() || ops.iter().any(|&op| is_seen(&kernel.op(op).op)) {
        return None;
    }
    let space = kernel.grid_space()?;
    let is_column = space.last().and_then(Dim::as_const) == Some(1);
    Some(if is_column { TileOrder::RowMajor } else { TileOrder::Grouped(Dim::from(BAND)) })
}
