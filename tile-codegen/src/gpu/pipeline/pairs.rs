//! Pairs of blocks that copy for each other ([`tile_ir::gpu::Pipelines::pairs`]): who a block is in its pair, and which
//! tile it takes.
//!
//! A pair takes two tiles that are neighbours along an axis. So pairs count what is left of the grid when that axis is
//! halved, in whatever order single blocks would; the block's rank in its pair says which of the two it takes.

use super::cluster;
use crate::emit::Ir;
use crate::gpu::region::Emitter;
use inkwell::values::IntValue;
use tile_ir::Dim;
use tile_ir::gpu::pipeline::PAIR;
use tile_ir::tile_order::TileOrder;

/// Blocks of a pair that get what one copies for both, a bit each.
pub(in crate::gpu) const BOTH: u64 = (1 << PAIR) - 1;

/// A block of a pair.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Pair<'c> {
    /// The axis of the grid along which the tiles of both are neighbours.
    axis: usize,
    /// Which of the two it is, an i32.
    pub(in crate::gpu) rank: IntValue<'c>,
    /// The number of the pair, and how many there are, i64.
    number: IntValue<'c>,
    count: IntValue<'c>,
}

impl<'c> Pair<'c> {
    /// The running block as one of a pair along an axis.
    pub(in crate::gpu) fn along(ir: &Ir<'c>, axis: usize) -> Pair<'c> {
        let [number, count] = cluster::number(ir);
        Pair { axis, rank: cluster::rank(ir), number, count }
    }

    /// The space of pairs in a space of tiles.
    fn space(self, ir: &Ir<'c>, tiles: &[IntValue<'c>]) -> Vec<IntValue<'c>> {
        let mut space = tiles.to_vec();
        space[self.axis] = ir.lshr(space[self.axis], ir.i64(1));
        space
    }
}

impl<'c> Emitter<'_, 'c> {
    /// The numbers of the tiles that the running block takes, of so many that are shared by blocks of which it is number
    /// `first` of `blocks`: the first, the end, and the step. A pair's are numbers of pairs of tiles.
    pub(in crate::gpu) fn own_tiles(
        &self,
        tiles: IntValue<'c>,
        first: IntValue<'c>,
        blocks: IntValue<'c>,
    ) -> (IntValue<'c>, IntValue<'c>, IntValue<'c>) {
        match self.grid.pair {
            None => (first, tiles, blocks),
            Some(pair) => (pair.number, self.ir.lshr(tiles, self.ir.i64(1)), pair.count),
        }
    }

    /// The index of the tile that the running block takes by such a number.
    pub(in crate::gpu) fn own_tile(
        &self,
        order: &TileOrder<Dim>,
        space: &[IntValue<'c>],
        number: IntValue<'c>,
    ) -> Vec<IntValue<'c>> {
        let ir = self.ir;
        let Some(pair) = self.grid.pair else { return ir.tile_index(order, space, number) };
        let mut index = ir.tile_index(order, &pair.space(ir, space), number);
        let first = ir.mul(index[pair.axis], ir.i64(PAIR as i64));
        index[pair.axis] = ir.add(first, ir.resize(pair.rank, 64, false));
        index
    }
}
