//! Bringing near what the next block reads, while this one computes.
//!
//! A block that goes over its rows several times waits for memory the first time and computes afterwards, while memory has
//! nothing to do: the processor looks ahead along a row, not from block to block. So every loop over such rows also asks
//! for its share of the rows that the next block of the range will read. They go to the second cache: the first one has
//! this block's rows. So does a block that turns its tile, whose rows are too short for the processor to look ahead along
//! them.

use super::LINE_BYTES;
use super::fuse::is_reduction_of_rows;
use super::region::Emitter;
use super::views::Window;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{Op, RegionId, ValueId};

/// What the next block reads, and which loops ask for it.
#[derive(Clone)]
pub(super) struct Ahead<'c> {
    window: Window<'c>,
    /// The loops over tiles of its shape, and how many of them are behind.
    loops: i64,
    done: i64,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Finds what the loops from this op of a region on may bring near, if it is the first that reads a tile which others
    /// read again.
    pub(super) fn look_ahead(&mut self, data: &'a OpData, region: RegionId) {
        if self.ahead.is_some() || !self.goes_over_rows(data) {
            return;
        }
        let streams = self.fusion.streams_of(data);
        let again = streams.into_iter().find(|load| self.fusion.use_count(load.results[0]) > 1);
        let Some(window) = again.and_then(|load| self.window_ahead(load)) else { return };
        let ops = self.instance.region(region).ops.iter().map(|&op| self.instance.op(op));
        let rest = ops.skip_while(|op| !std::ptr::eq(*op, data));
        let loops = rest.filter(|op| self.goes_over_rows(op)).count() as i64;
        self.ahead = (loops > 1).then_some(Ahead { window, loops, done: 0 });
    }

    /// Counts a loop that may have asked for its share.
    pub(super) fn looked_ahead(&mut self, data: &'a OpData) {
        if self.goes_over_rows(data)
            && let Some(ahead) = &mut self.ahead
        {
            ahead.done += 1;
            if ahead.done == ahead.loops {
                self.ahead = None;
            }
        }
    }

    fn goes_over_rows(&self, data: &OpData) -> bool {
        data.op.is_store() || is_reduction_of_rows(self.instance, data)
    }

    /// Where the tile lies that the next block loads, if its place depends on the block alone.
    pub(super) fn window_ahead(&self, data: &'a OpData) -> Option<Window<'c>> {
        let (load, next) = (data.load()?, Some(&self.next_tile).filter(|next| !next.is_empty())?);
        let index: Option<Vec<IntValue<'c>>> = match load.index {
            [] => Some(next.clone()),
            index => index.iter().map(|&value| self.index_ahead(value, next)).collect(),
        };
        Some(self.window(load.view, &index?, false))
    }

    fn index_ahead(&self, value: ValueId, next: &[IntValue<'c>]) -> Option<IntValue<'c>> {
        let data = self.definition(value)?;
        match &data.op {
            Op::Constant { .. } => Some(self.index(value)),
            Op::BlockIndex => next.get(data.results.iter().position(|&result| result == value)?).copied(),
            _ => None,
        }
    }

    /// Asks for this loop's share of what the next block reads: in the turn from element `first` on of a row of a tile of
    /// this shape, which handles so many elements.
    pub(super) fn prefetch_ahead(
        &self,
        shape: &[i64],
        row: &[IntValue<'c>],
        first: IntValue<'c>,
        count: i64,
    ) {
        let ir = self.ir;
        let Some(Ahead { window, loops, done }) = &self.ahead else { return };
        if window.shape() != shape {
            return;
        }
        let before = ir.i64(done * window.width());
        let start = ir.udiv(ir.add(first, before), ir.i64(*loops));
        let start = self.row_element_anywhere(window, row, start);
        let bytes = count * window.dtype().bytes() as i64 / loops;
        for line in (0..bytes.max(1)).step_by(LINE_BYTES as usize) {
            ir.prefetch_for_later(ir.bytes_further(start, ir.i64(line)));
        }
    }
}
