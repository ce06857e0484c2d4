//! Loops over rows of tiles that are read from their tensors, in two parts: first the vectors whose elements all exist,
//! without masks, and then, with masks, the vectors in or beyond which the tensor ends.
//!
//! So a row of 1000 elements in a tile of 1024 is read as fast as one of 1024, except for its last two vectors.

use super::views::Window;
use crate::cpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;

/// The vectors of a row that a loop goes over: from the element where the first begins to that where the last ends.
pub(in crate::cpu) type Part<'c> = (IntValue<'c>, IntValue<'c>);

/// A row of a tile that an op's loop goes over, in vectors.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct RowOf<'r, 'a, 'c> {
    pub(in crate::cpu) data: &'a OpData,
    /// The tile's extents.
    pub(in crate::cpu) shape: &'r [i64],
    pub(in crate::cpu) index: &'r [IntValue<'c>],
    /// Elements of a vector.
    pub(in crate::cpu) lanes: i64,
    /// Whether all that the op's streams read exists.
    pub(in crate::cpu) whole: bool,
}

/// What an op's streams read of a row.
pub(in crate::cpu) struct Covering<'a, 'c> {
    streams: Vec<(&'a OpData, Window<'c>)>,
    /// Whether all of it exists; `None` where it is known to.
    pub(in crate::cpu) covers: Option<IntValue<'c>>,
    /// What of the row exists in all streams; `None` where all is known to.
    pub(in crate::cpu) inside: Option<Part<'c>>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits loops over the whole vectors of a row, whose elements an op's streams read: once for those that exist and once
    /// for the others; once for all, where the streams have no masks. The streams stay open for what comes behind the last
    /// whole vector.
    pub(in crate::cpu) fn each_part_of_row(
        &mut self,
        row: RowOf<'_, 'a, 'c>,
        emit: &mut dyn FnMut(&mut Self, Part<'c>),
    ) {
        let ir = self.ir;
        let width = row.shape.last().expect("verified: a tile has rank 1 or more");
        let (begin, end) = (ir.i64(0), ir.i64(width / row.lanes * row.lanes));
        let streams = self.streams_of_row(row);
        let inside = self.inside_all(&streams, row);
        let whole = inside.map_or(end, |(first, inside)| {
            let begins = ir.icmp(IntPredicate::EQ, first, ir.i64(0));
            let inside = ir.select_int(begins, ir.lesser(inside, end), ir.i64(0));
            ir.sub(inside, ir.urem(inside, ir.i64(row.lanes)))
        });
        let parts = [(true, (begin, whole)), (false, (whole, end))];
        for (exists, part) in parts.into_iter().take(if inside.is_some() { 2 } else { 1 }) {
            self.open_streams(&streams, exists);
            emit(self, part);
        }
    }

    /// What an op's streams read of a row that is gone through as far as `end`.
    pub(in crate::cpu) fn covering(&self, row: RowOf<'_, 'a, 'c>, end: IntValue<'c>) -> Covering<'a, 'c> {
        let ir = self.ir;
        let streams = self.streams_of_row(row);
        let inside = self.inside_all(&streams, row);
        let covers = inside.map(|(first, last)| {
            let begins = ir.icmp(IntPredicate::EQ, first, ir.i64(0));
            ir.and(begins, ir.icmp(IntPredicate::UGE, last, end))
        });
        Covering { streams, covers, inside }
    }

    /// Opens what is read of a row for loops that run where all of it exists, if they do.
    pub(in crate::cpu) fn open_covering(&mut self, covering: &Covering<'a, 'c>, exists: bool) {
        self.open_streams(&covering.streams, exists);
    }

    fn streams_of_row(&self, row: RowOf<'_, 'a, 'c>) -> Vec<(&'a OpData, Window<'c>)> {
        let loads = self.fusion.streams_of(row.data).into_iter();
        loads.map(|load| (load, self.window_of(load))).collect()
    }

    fn open_streams(&mut self, streams: &[(&'a OpData, Window<'c>)], exists: bool) {
        streams.iter().for_each(|(load, window)| self.open_stream(load, window, exists));
    }

    /// Emits what goes over rows of a tile: of one row once; of several, of which each is short, for the case that all of
    /// their streams' elements and of a further window exist, and for the case that some don't. `emit` is told which.
    pub(in crate::cpu) fn with_rows(
        &mut self,
        data: &'a OpData,
        shape: &[i64],
        further: &[Window<'c>],
        emit: &mut dyn FnMut(&mut Self, bool),
    ) {
        let (_, rows) = shape.split_last().expect("verified: a tile has rank 1 or more");
        if rows.iter().all(|&extent| extent == 1) {
            return emit(self, false);
        }
        let loads = self.fusion.streams_of(data);
        self.with_streams(&loads, further, emit);
    }

    /// The elements of a row that exist in all streams' windows; `None` where all are known to.
    fn inside_all(&self, streams: &[(&'a OpData, Window<'c>)], row: RowOf<'_, 'a, 'c>) -> Option<Part<'c>> {
        let ir = self.ir;
        let masked = streams.iter().filter(|(_, window)| !row.whole && !window.is_known_whole());
        masked
            .map(|(_, window)| self.inside(window, row))
            .reduce(|(first, end), (other, before)| (ir.greater(first, other), ir.lesser(end, before)))
    }

    /// The elements of a row that exist in a stream's window: none also where that isn't known.
    fn inside(&self, window: &Window<'c>, row: RowOf<'_, 'a, 'c>) -> Part<'c> {
        let ir = self.ir;
        let tile = window.shape();
        let (last, axes) = tile.split_last().expect("verified: a tile has rank 1 or more");
        let is_row = tile.len() == row.shape.len()
            && Some(last) == row.shape.last()
            && axes.iter().zip(row.shape).all(|(&own, &extent)| own == extent || own == 1);
        if !self.fusion.keeps_rows(row.data) || !is_row {
            let all = row.shape.last().copied().unwrap_or(1);
            return (ir.i64(0), ir.select_int(self.is_whole(window), ir.i64(all), ir.i64(0)));
        }
        let index = axes.iter().zip(row.index).map(|(&own, &i)| if own == 1 { ir.i64(0) } else { i });
        let index: Vec<IntValue<'c>> = index.collect();
        let (first, end) = self.row_range(window, &index);
        (first.unwrap_or_else(|| ir.i64(0)), end)
    }
}
