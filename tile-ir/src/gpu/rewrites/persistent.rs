//! Blocks that go on to further tiles: the body of a plain kernel becomes that of a loop over tiles, as its author could
//! have written it, so that a launch needs no more blocks than run at once.
//!
//! The ops of the block's own tile then mean the loop's tile, and so does `block_id`. Views, and numbers that are the same
//! for every tile, are made before the loop; tiles aren't, because one that is held from turn to turn takes registers from
//! the others. The launch is as before: code reads how many blocks there are from the device, and how many tiles from the
//! sizes, because the same kernel on another device keeps one block per tile.
//!
//! It is done where it pays ([`order`]), and never where it could be seen: where blocks may wait for each other, where
//! messages name them, where the author has said how blocks share tiles, and where a view depends on the block.

mod growth;

use crate::dim::Dim;
use crate::dtype::DType;
use crate::gpu::Pipelines;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::loc::Loc;
use crate::ops::elementwise::Cost;
use crate::ops::{Effect, Op};
use crate::passes;
use crate::target::TargetDesc;
use crate::tile_order::TileOrder;
use crate::types::Type;
use std::collections::{HashMap, HashSet};

/// Tiles in a column of a band: with a wave of blocks about square, what a wave reads is least.
const BAND: i64 = 8;

/// The order in which blocks of a kernel should share its tiles; `None` where each block has one.
///
/// * Kernels with pipelines: while the consumers finish a tile, the producer already copies for the next one. One block
///   runs on a multiprocessor, so that nothing else hides the end of a tile. Where loops take the more turns the larger the
///   tile's index along an axis is, those that take longest come first; else blocks that run at one time should need few rows
///   and columns of the factors.
/// * Kernels whose blocks read and write fewer bytes than [`TargetDesc::least_block_bytes`], and compute nothing that takes
///   long: beginning a block takes longer there than what it moves. Successive tiles lie next to each other in memory.
pub(in crate::gpu) fn order(
    kernel: &Kernel,
    target: &TargetDesc,
    pipelines: &Pipelines,
) -> Option<TileOrder<Dim>> {
    if !may_share(kernel) {
        return None;
    }
    match pipelines.is_empty() {
        false => growth::axis(kernel).map(TileOrder::Falling).or_else(|| banded(kernel)),
        true => is_small(kernel, target).then_some(TileOrder::RowMajor),
    }
}

/// The order that needs few rows and columns of the factors of products at one time.
pub(in crate::gpu) fn banded(kernel: &Kernel) -> Option<TileOrder<Dim>> {
    let space = kernel.grid_space()?;
    let is_column = space.last().and_then(Dim::as_const) == Some(1);
    Some(if is_column { TileOrder::RowMajor } else { TileOrder::Grouped(Dim::from(BAND)) })
}

/// Whether it shows which block has which tile.
pub(in crate::gpu) fn is_seen(kernel: &Kernel) -> bool {
    let shows = |op: &Op| matches!(op, Op::Tiles(_)) || op.effect().is_seen_by_others();
    kernel.walk().into_iter().any(|op| shows(&kernel.op(op).op))
}

/// Whether blocks may take tiles in pairs: where they may share them, and in a kernel that says itself how they do, if
/// what a block carries from one of its tiles to the next isn't seen, nor its number.
pub(in crate::gpu) fn may_pair(kernel: &Kernel) -> bool {
    if !kernel.is_persistent() {
        return may_share(kernel);
    }
    let shows = |op: OpId| {
        let data = kernel.op(op);
        match data.op {
            Op::Tiles(_) => !data.results.is_empty(),
            Op::BlockId { .. } | Op::BlockCount { .. } => true,
            _ => data.op.effect().is_seen_by_others(),
        }
    };
    !kernel.walk().into_iter().any(shows)
}

fn may_share(kernel: &Kernel) -> bool {
    let (before, _) = split(kernel);
    let is_before = |op: &OpId| before.contains(op);
    let mut views = kernel.walk().into_iter().filter(|&op| is_view(&kernel.op(op).op));
    kernel.grid.is_none()
        && !is_seen(kernel)
        && views.all(|op| is_before(&op))
        && output(kernel, &before).is_some()
}

fn is_view(op: &Op) -> bool {
    matches!(op, Op::Partition(_) | Op::View(_))
}

/// Whether blocks of the kernel read and write so little, and do so little besides, that beginning them takes longer.
fn is_small(kernel: &Kernel, target: &TargetDesc) -> bool {
    let ops: Vec<&OpData> = kernel.walk().into_iter().map(|op| kernel.op(op)).collect();
    let moved =
        |ops: &mut dyn Iterator<Item = &&OpData>| -> u64 { ops.map(|data| moved_bytes(kernel, data)).sum() };
    let read = moved(&mut ops.iter().filter(|data| !data.op.is_store()));
    read > 0
        && moved(&mut ops.iter()) < target.least_block_bytes
        && !ops.iter().any(|data| takes_long(&data.op))
}

/// Whether an op takes longer than reading its operands, whatever their size.
fn takes_long(op: &Op) -> bool {
    let is_loop = matches!(op, Op::For | Op::While);
    let is_ordered = op.is_fold_in_order() || matches!(op, Op::Sort { .. });
    let is_many = matches!(op, Op::Binary(op) if op.cost() == Cost::Rounds);
    is_loop || is_ordered || op.is_product() || is_many
}

/// Bytes of global memory that an op reads or writes.
fn moved_bytes(kernel: &Kernel, data: &OpData) -> u64 {
    let tiles = match data.op.effect() {
        Effect::Reads => &data.results,
        Effect::Writes => &data.operands,
        // Blocks whose atomic operations others see don't share tiles.
        Effect::ReadsAndWrites | Effect::None | Effect::Says | Effect::Hints | Effect::EndsRegion => {
            return 0;
        }
    };
    let bytes = |&value: &ValueId| {
        let extents = crate::gpu::shape_of(kernel, value)?;
        Some(extents.iter().product::<u64>() * kernel.ty(value).elem().known().map_or(0, DType::bytes) as u64)
    };
    tiles.iter().filter_map(bytes).sum()
}

/// The ops of the body that the loop over tiles needs once, and those that it needs for each tile.
fn split(kernel: &Kernel) -> (Vec<OpId>, Vec<OpId>) {
    let is_number = |data: &OpData| {
        let is_tile = |&value: &ValueId| matches!(kernel.ty(value), Type::Tile(_));
        passes::is_value(kernel, data) && !data.results.iter().any(is_tile)
    };
    let means_block = |op: &Op| matches!(op, Op::BlockIndex | Op::BlockId { .. });
    passes::split(kernel, kernel.body(), HashSet::new(), &|op| {
        let data = kernel.op(op);
        !means_block(&data.op) && (is_view(&data.op) || is_number(data))
    })
}

/// The first view of an output among these ops.
fn output(kernel: &Kernel, ops: &[OpId]) -> Option<ValueId> {
    let view = |&op: &OpId| {
        let result = *kernel.op(op).results.first()?;
        kernel.ty(result).as_partition().is_some_and(|view| view.tensor.mutable).then_some(result)
    };
    ops.iter().find_map(view)
}

/// Puts the body of a kernel for which there is an [`order`] into a loop over tiles.
pub(in crate::gpu) fn run(kernel: &mut Kernel, order: TileOrder<Dim>) {
    say_by_tile(kernel);
    let (before, mut inside) = split(kernel);
    let output = output(kernel, &before).expect("a kernel whose blocks share tiles has an output");
    inside.push(kernel.new_op(op(Op::Yield, Vec::new(), Vec::new())));
    let (body, region) = (kernel.body(), kernel.new_region());
    kernel.region_mut(region).ops = inside;
    let tiles = OpData { regions: vec![region], ..op(Op::Tiles(order), vec![output], Vec::new()) };
    let tiles = kernel.new_op(tiles);
    kernel.region_mut(body).ops = before;
    kernel.region_mut(body).ops.push(tiles);
}

fn op(op: Op, operands: Vec<ValueId>, results: Vec<ValueId>) -> OpData {
    OpData { op, operands, results, regions: Vec::new(), loc: Loc::UNKNOWN }
}

/// Says the block's place in the grid, and the extents of the grid, by the index of its tile and their extents.
fn say_by_tile(kernel: &mut Kernel) {
    let space = kernel.grid_space().expect("a kernel whose blocks share tiles has an output");
    let (before, _) = split(kernel);
    let output = output(kernel, &before).expect("a kernel whose blocks share tiles has an output");
    let mut index: Option<Vec<ValueId>> = None;
    let mut same = HashMap::new();
    for op in kernel.walk() {
        match kernel.op(op).op {
            Op::BlockCount { axis } => kernel.op_mut(op).op = Op::Extent(space[axis].clone()),
            Op::BlockId { axis } => {
                let index = index.get_or_insert_with(|| {
                    space.iter().map(|_| kernel.new_value(Type::scalar(DType::Index), None)).collect()
                });
                same.insert(kernel.op(op).results[0], index[axis]);
                let region = kernel.region_of(op).expect("the op stands in a region");
                kernel.region_mut(region).ops.retain(|&other| other != op);
            }
            _ => {}
        }
    }
    let Some(results) = index else { return };
    passes::replace_uses(kernel, &same);
    let own = kernel.new_op(op(Op::BlockIndex, vec![output], results));
    let body = kernel.body();
    // Before all that may use it; the view, wherever it is made, goes before the loop.
    kernel.region_mut(body).ops.insert(0, own);
}

#[cfg(test)]
mod tests;
