//! The order in which a kernel that transposes takes its tiles, and which of the next tiles' memory it prefetches
//! meanwhile.
//!
//! If a matrix is transposed tile by tile, each row of a tile is a separate access, to a page of its own, and as short as
//! the tile is wide. So the tiles of a range are taken in **bands**: tiles that are neighbours along the source's rows come
//! one after the other until they have read a **piece** of each row; then come those below, down to the source's last row.
//! The rows of a piece are too short for the processor's prefetchers, so each tile prefetches its share of the pieces that
//! the band reads next, one piece after the other: memory delivers 1 KiB that is contiguous in less than half the time of
//! the same amount in 16 places. On processors with more outstanding requests (`vectors/processor.rs`) a band is as wide as
//! the source, and each block prefetches what the next tile's block reads. The result is written in **strips** of two
//! lines, row by row.

use super::views::Window;
use crate::cpu::LINE_BYTES;
use crate::cpu::elements::IndexRange;
use crate::cpu::region::{Emitter, extents};
use crate::cpu::vectors::processor::{Processor, TransposedOrder};
use crate::cpu::vectors::transpose::transposed_axis;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::Instance;
use tile_ir::kernel::OpData;

/// Bytes of a cache line.
const LINE: i64 = LINE_BYTES as i64;

/// More rows of tiles than a grid has.
pub(in crate::cpu) const ALL_ROWS: i64 = 1 << 31;

/// Lines of the result's rows that are written one after the other before the next rows' are.
pub(in crate::cpu) const STRIP_LINES: i64 = 2;

/// Whether a kernel transposes tiles.
pub(in crate::cpu) fn transposes(instance: &Instance) -> bool {
    let ops = &instance.region(instance.body()).ops;
    ops.iter().any(|&op| transposed_axis(instance, instance.op(op)).is_some())
}

/// Tiles of a piece, where that isn't one after the other in row order: a range of blocks goes through the grid in bands of
/// so many rows of tiles, column by column. A block that transposes its tile reads across the rows that its neighbour reads from,
/// so those of a band read pieces of the same rows.
pub(in crate::cpu) fn tiles_of_piece(instance: &Instance, processor: &Processor) -> Option<i64> {
    if !transposes(instance) {
        return None;
    }
    let ops = &instance.region(instance.body()).ops;
    let store = ops.iter().map(|&op| instance.op(op)).find(|data| data.op.is_store())?;
    let view = instance.ty(store.operands[0]).as_partition().expect("verified: a view");
    let rows = *extents(&view.tile).iter().rev().nth(1)?;
    let bytes = view.tensor.elem.known()?.bytes() as i64;
    Some(match processor.prefetching.transposed {
        TransposedOrder::InPieces(piece) => (piece / (rows * bytes).max(1)).max(1),
        TransposedOrder::AlongRows => ALL_ROWS,
    })
}

/// What the blocks of a tile ask for.
pub(in crate::cpu) enum TransposedAhead<'c> {
    /// As many lines as it reads, one after the other along the pieces that the band's tiles read next.
    Pieces(PiecesAhead<'c>),
    /// What the same block of the next tile along the source's rows reads.
    Beside,
}

/// The pieces that the band's tiles read next, as many rows further as a tile has columns, and which lines of them the tile's
/// blocks ask for.
pub(in crate::cpu) struct PiecesAhead<'c> {
    /// Where the pieces begin.
    address: PointerValue<'c>,
    /// How many blocks of the band's other tiles ask before those of this one.
    before: IntValue<'c>,
    /// Cache lines of a piece.
    lines: i64,
    /// Rows of the result that a block has: it reads, and asks for, as many lines.
    side: i64,
    /// Blocks of a tile, one below the other.
    blocks: i64,
    /// Bytes of an element.
    bytes: i64,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// What the blocks of this tile ask for, where that is known.
    pub(in crate::cpu) fn ahead_of_transposed(
        &self,
        load: &'a OpData,
        to: &Window<'c>,
        axis: usize,
    ) -> Option<TransposedAhead<'c>> {
        match self.processor.prefetching.transposed {
            TransposedOrder::InPieces(_) => self.pieces_ahead(load, to, axis).map(TransposedAhead::Pieces),
            TransposedOrder::AlongRows => Some(TransposedAhead::Beside),
        }
    }

    fn pieces_ahead(&self, load: &'a OpData, to: &Window<'c>, axis: usize) -> Option<PiecesAhead<'c>> {
        let (ir, bytes) = (self.ir, to.dtype().bytes() as i64);
        let tiles = tiles_of_piece(self.instance, self.processor).filter(|_| self.entry.is_in_bands())?;
        let next = self.window_ahead(load)?;
        let [rows, columns] = [to.shape()[axis], to.shape()[to.shape().len() - 1]];
        let side = self.side(to.dtype(), bytes);
        let [blocks, across] = [rows / side, columns * bytes / LINE];
        let place = ir.urem(self.grid.tile[self.grid.tile.len() - 2], ir.i64(tiles));
        Some(PiecesAhead {
            address: ir.bytes_further(self.first_address(&next), ir.mul(place, ir.i64(-rows * bytes))),
            before: ir.mul(place, ir.i64(blocks * across)),
            lines: (tiles * rows * bytes / LINE).max(side),
            side,
            blocks,
            bytes,
        })
    }

    /// Asks for as many lines of the pieces ahead as a block reads, the one at this row and column of the result, in the strip of
    /// these columns. `stride` is that from piece to piece, in elements.
    pub(in crate::cpu) fn ask_for_pieces(
        &self,
        ahead: &PiecesAhead<'c>,
        stride: IntValue<'c>,
        strip: IndexRange<'c>,
        [row, column]: [IntValue<'c>; 2],
    ) {
        let (ir, side) = (self.ir, ahead.side);
        let in_lines = |columns| ir.udiv(columns, ir.i64(LINE / ahead.bytes));
        let strips = ir.mul(in_lines(strip.start), ir.i64(ahead.blocks));
        let rows = ir.mul(ir.udiv(row, ir.i64(side)), in_lines(ir.sub(strip.end, strip.start)));
        let in_tile = ir.add(ir.add(strips, rows), in_lines(ir.sub(column, strip.start)));
        let number = ir.mul(ir.add(ahead.before, in_tile), ir.i64(side));
        let [piece, line] = [ir.udiv(number, ir.i64(ahead.lines)), ir.urem(number, ir.i64(ahead.lines))];
        let piece = ir.mul(ir.mul(piece, stride), ir.i64(ahead.bytes));
        let start = ir.bytes_further(ahead.address, ir.add(piece, ir.mul(line, ir.i64(LINE))));
        for line in 0..side {
            ir.prefetch_for_later(ir.bytes_further(start, ir.i64(line * LINE)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::compiled::machine;

    fn tiles_at(level: &str, rows: usize, dtype: &str, op: &str) -> Option<i64> {
        let source = format!(
            "kernel @k(%x: tensor<m x n x {dtype}>, %y: mut tensor<n x m x {dtype}>) {{
  %vx = partition %x [64, {rows}] : partition<m x n x {dtype}, [64, {rows}]>
  %vy = partition %y [{rows}, 64] : mut partition<n x m x {dtype}, [{rows}, 64]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : {dtype}
  %t = load_masked %vx[%j, %i] pad %zero : tile<64 x {rows} x {dtype}>
  %r = {op} : tile<{rows} x 64 x {dtype}>
  store_masked %vy, %r
}}
"
        );
        tiles_of_piece(&Instance::parse(&source, &[]).unwrap(), &Processor::of(&machine(level)))
    }

    fn tiles(rows: usize, dtype: &str, op: &str) -> Option<i64> {
        tiles_at("x86-64-v3", rows, dtype, op)
    }

    #[test]
    fn a_piece_is_a_kibibyte_of_tiles() {
        let transposed = "permute %t [1, 0]";
        assert_eq!(tiles(64, "f32", transposed), Some(4));
        assert_eq!(tiles(64, "bf16", transposed), Some(8));
        assert_eq!(tiles(512, "f32", transposed), Some(1));
        assert_eq!(tiles(64, "f32", "neg %t"), None, "nothing is transposed");
        assert_eq!(tiles_at("x86-64-v4", 64, "f32", transposed), Some(16), "a page, on processors before");
        assert_eq!(tiles_at("x86-64-v4-pairs", 64, "f32", transposed), Some(4));
        assert_eq!(tiles_at("x86-64-v4-tiles", 64, "f32", transposed), Some(ALL_ROWS), "as far as rows go");
    }
}
