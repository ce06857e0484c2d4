//! Loops over rows of tiles that are read from their tensors, in two parts: first the vectors whose elements all exist,
//! without masks, and then, with masks, the vectors in or beyond which the tensor ends.
//!
//! So a row of 1000 elements in a tile of 1024 is read as fast as one of 1024, except for its last two vectors.

use super::gathered::OpenRow;
use super::runs::RunParts;
use super::views::Window;
use crate::cpu::elements::IndexRange;
use crate::cpu::region::Emitter;
use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

/// What is made of the edges of a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) enum Bounds {
    /// Every place of a tile is taken to exist.
    Unchecked,
    /// Which places exist is computed.
    Checked,
}

impl Bounds {
    /// Those of code that runs where every place exists, if it does.
    pub(in crate::cpu) fn where_whole(whole: bool) -> Bounds {
        if whole { Bounds::Unchecked } else { Bounds::Checked }
    }
}

/// A row of a tile.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Row<'r, 'c> {
    /// Its index along all axes but the last.
    pub(in crate::cpu) index: &'r [IntValue<'c>],
    /// Whether all that is read or stored there is known to exist.
    pub(in crate::cpu) whole: bool,
}

/// The places of a row of a tile that exist in the tensor.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Existing<'c> {
    /// The first; `None` where that is the row's first.
    pub(in crate::cpu) begin: Option<IntValue<'c>>,
    pub(in crate::cpu) end: IntValue<'c>,
}

impl<'c> Existing<'c> {
    pub(in crate::cpu) fn range(self, ir: &Ir<'c>) -> IndexRange<'c> {
        IndexRange { start: self.begin.unwrap_or_else(|| ir.i64(0)), end: self.end }
    }
}

/// An op's loop over a row of a tile, in vectors.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct RowLoop<'r, 'a, 'c> {
    pub(in crate::cpu) data: &'a OpData,
    /// The tile's extents.
    pub(in crate::cpu) shape: &'r [i64],
    pub(in crate::cpu) row: Row<'r, 'c>,
    /// Elements of a vector.
    pub(in crate::cpu) lanes: i64,
}

/// What an op's streams read of a row.
pub(in crate::cpu) struct Covering<'a, 'c> {
    streams: Vec<(&'a OpData, Window<'c>)>,
    /// The rows that gathers read inside.
    runs: Vec<(ValueId, OpenRow<'c>)>,
    /// Whether all of it exists; `None` where it is known to.
    pub(in crate::cpu) covers: Option<IntValue<'c>>,
    /// What of the row exists in all streams and follows each other in all gathers; `None` where all is known to.
    pub(in crate::cpu) inside: Option<IndexRange<'c>>,
}

impl Covering<'_, '_> {
    /// Whether gathers read rows inside.
    pub(in crate::cpu) fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits loops over the whole vectors of a row, whose elements an op's streams read: once for those that exist and once
    /// for the others; once for all, where the streams have no masks. The streams stay open for what comes behind the last
    /// whole vector. `emit` is given the range from the first vector's first element to the last one's end.
    pub(in crate::cpu) fn each_part_of_row(
        &mut self,
        over: RowLoop<'_, 'a, 'c>,
        emit: &mut dyn FnMut(&mut Self, IndexRange<'c>),
    ) {
        let ir = self.ir;
        let width = over.shape.last().expect("verified: a tile has rank 1 or more");
        let end = ir.i64(width / over.lanes * over.lanes);
        let streams = self.streams_of(over);
        let inside = self.inside_all(&streams, over);
        let whole = inside.map_or(end, |inside| {
            let begins = ir.icmp(IntPredicate::EQ, inside.start, ir.i64(0));
            let inside = ir.select_int(begins, ir.lesser(inside.end, end), ir.i64(0));
            ir.sub(inside, ir.urem(inside, ir.i64(over.lanes)))
        });
        let parts = [
            (Bounds::Unchecked, IndexRange::up_to(ir, whole)),
            (Bounds::Checked, IndexRange { start: whole, end }),
        ];
        for (bounds, part) in parts.into_iter().take(if inside.is_some() { 2 } else { 1 }) {
            self.open_streams(&streams, bounds);
            emit(self, part);
        }
    }

    /// What an op's streams read of a row that is gone through as far as `end`.
    pub(in crate::cpu) fn covering(
        &mut self,
        over: RowLoop<'_, 'a, 'c>,
        end: IntValue<'c>,
    ) -> Covering<'a, 'c> {
        let ir = self.ir;
        let streams = self.streams_of(over);
        let parts = self.parts_of_runs(over.row.index);
        let (runs, of_runs) =
            (parts.as_ref().map_or_else(Vec::new, RunParts::rows), parts.map(|parts| parts.inside(ir)));
        let of_streams = self.inside_all(&streams, over);
        let inside = [of_streams, of_runs].into_iter().flatten().reduce(|a, b| a.both(ir, b));
        let covers = inside.map(|inside| {
            let begins = ir.icmp(IntPredicate::EQ, inside.start, ir.i64(0));
            ir.and(begins, ir.icmp(IntPredicate::UGE, inside.end, end))
        });
        Covering { streams, runs, covers, inside }
    }

    /// Opens what is read of a row for loops whose elements are checked, or all exist.
    pub(in crate::cpu) fn open_covering(&mut self, covering: &Covering<'a, 'c>, bounds: Bounds) {
        self.open_streams(&covering.streams, bounds);
        for &(tile, row) in &covering.runs {
            match bounds {
                Bounds::Unchecked => self.sources.open_rows.insert(tile, row),
                Bounds::Checked => self.sources.open_rows.remove(&tile),
            };
        }
    }

    fn streams_of(&self, over: RowLoop<'_, 'a, 'c>) -> Vec<(&'a OpData, Window<'c>)> {
        let loads = self.fusion.streams_of(over.data).into_iter();
        loads.map(|load| (load, self.window_of(load))).collect()
    }

    fn open_streams(&mut self, streams: &[(&'a OpData, Window<'c>)], bounds: Bounds) {
        streams.iter().for_each(|(load, window)| self.open_stream(load, window, bounds));
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
    fn inside_all(
        &self,
        streams: &[(&'a OpData, Window<'c>)],
        over: RowLoop<'_, 'a, 'c>,
    ) -> Option<IndexRange<'c>> {
        let ir = self.ir;
        let masked = streams.iter().filter(|(_, window)| !over.row.whole && !window.is_known_whole());
        masked.map(|(_, window)| self.inside(window, over)).reduce(|a, b| a.both(ir, b))
    }

    /// The elements of a row that exist in a stream's window: none also where that isn't known.
    fn inside(&self, window: &Window<'c>, over: RowLoop<'_, 'a, 'c>) -> IndexRange<'c> {
        let ir = self.ir;
        let tile = window.shape();
        let (last, axes) = tile.split_last().expect("verified: a tile has rank 1 or more");
        let is_row = tile.len() == over.shape.len()
            && Some(last) == over.shape.last()
            && axes.iter().zip(over.shape).all(|(&own, &extent)| own == extent || own == 1);
        if !self.fusion.keeps_rows(over.data) || !is_row {
            let all = over.shape.last().copied().unwrap_or(1);
            return IndexRange::up_to(ir, ir.select_int(self.is_whole(window), ir.i64(all), ir.i64(0)));
        }
        let index = axes.iter().zip(over.row.index).map(|(&own, &i)| if own == 1 { ir.i64(0) } else { i });
        let index: Vec<IntValue<'c>> = index.collect();
        self.existing(window, &index).range(ir)
    }
}
