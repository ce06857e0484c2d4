//! Stores of tiles through partition views, row by row: of each row the elements that exist in the tensor.

use super::parts::{Bounds, Existing, Row, RowLoop};
use super::runs::each_side;
use super::short_rows::ShortRows;
use super::streaming::RowLines;
use super::views::Window;
use crate::cpu::elements::{IndexRange, each_index};
use crate::cpu::lines::reduce::lanes_of;
use crate::cpu::region::Emitter;
use crate::emit::LoopHint;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

/// The most ops of which a line of bytes is computed at once where some gather.
const OPS_OF_A_LINE: usize = 16;

/// And so many elements are, of more ops.
const MOST_LANES: i64 = 16;

/// A tile, and where in its tensor it is stored.
pub(in crate::cpu) struct StoredTile<'c> {
    pub(in crate::cpu) window: Window<'c>,
    pub(in crate::cpu) value: ValueId,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// A store, unless what made the tile has stored it.
    pub(in crate::cpu) fn store_unless_written(&mut self, data: &'a OpData) {
        let Some(&is_written) = self.written.get(&data.operands[1]) else { return self.store(data) };
        self.ir.unless(is_written, || self.store(data));
    }

    /// A store, with those that share its loop.
    fn store(&mut self, data: &'a OpData) {
        self.with_joined(self.first_joined_in_loop(data), |emitter| emitter.store_rows(data));
    }

    fn store_rows(&mut self, data: &'a OpData) {
        let stores = self.fusion.done_with(data);
        let tile = |store: &&OpData| StoredTile { window: self.window_of(store), value: store.operands[1] };
        let tiles: Vec<StoredTile<'c>> = stores.iter().map(tile).collect();
        let Some(StoredTile { window, value }) = tiles.first() else { return };
        if let Some(load) = self.definition(*value).and_then(|made| self.fusion.transposed_load(made)) {
            return self.store_transposed(window, *value, load);
        }
        let (&width, rows) = window.shape().split_last().expect("verified: a tensor has rank 1 or more");
        let (loads, gathers) = (self.fusion.streams_of(data), self.fusion.gathers_of(data));
        let existing = |emitter: &Self, row: &[IntValue<'c>], whole| match whole {
            true => Existing { begin: None, end: emitter.ir.i64(width) },
            false => emitter.existing(window, row),
        };
        let values: Vec<ValueId> = tiles.iter().map(|tile| tile.value).collect();
        let further: Vec<Window<'c>> = tiles.iter().map(|tile| tile.window.clone()).collect();
        let lines = tiles.iter().map(|tile| self.elements_of_line(&tile.window)).collect::<Option<Vec<_>>>();
        let lines = lines.and_then(|lines| lines.into_iter().max());
        match lines.map(|elements| elements.min(self.most_lanes(data))) {
            None => self.with_streams(&loads, &further, &mut |emitter, whole| {
                let rows = ShortRows { tiles: &values, shape: window.shape(), stored: &further, whole };
                emitter.each_short_row(rows, &mut |emitter, row, whole| {
                    let places = existing(emitter, row, whole);
                    emitter.with_gathered_rows(&gathers, row, places.range(emitter.ir), &mut |emitter| {
                        emitter.store_elements(&tiles, row, places);
                    });
                });
            }),
            // Of no row, the places that exist wherever a row does.
            Some(lanes) => self.with_runs(data, self.existing(window, &[]).range(self.ir), &mut |emitter| {
                emitter.with_rows(data, window.shape(), &further, &mut |emitter, whole| {
                    emitter.each_row_of(width, rows, &mut |emitter, index| {
                        let row = Row { index, whole };
                        emitter.store_row(&tiles, RowLoop { data, shape: window.shape(), row, lanes });
                    });
                });
            }),
        }
    }

    /// How many elements an op's loop computes at once at most: where elements are gathered one by one and much is computed, a
    /// line of bytes would be four times as much code, which is no faster and takes three times as long to compile.
    fn most_lanes(&self, data: &'a OpData) -> i64 {
        let computed = self.fusion.computed_by(data);
        let is_long = computed.len() > OPS_OF_A_LINE;
        let is_limited = is_long && computed.into_iter().any(|op| self.reads_short_elements(op));
        if is_limited { MOST_LANES } else { i64::MAX }
    }

    /// Stores the elements of a row of each tile that exist, some at a time: without masks those that lie between all places
    /// where something that is read begins or ends, if there are such.
    fn store_row(&mut self, tiles: &[StoredTile<'c>], over: RowLoop<'_, 'a, 'c>) {
        let (ir, row, first) = (self.ir, over.row, &tiles[0].window);
        let existing = self.existing(first, row.index).range(ir);
        let covering = self.covering(over, existing.end);
        let leaves = self.leaves(over.data, &covering);
        let elements = if leaves.is_some() { lanes_of(first.width()) } else { over.lanes };
        let lines = self.lines_of_tiles(tiles, row, elements);
        let Some(inside) = covering.inside else {
            self.open_covering(&covering, Bounds::Unchecked);
            self.store_lines(&lines, row.index, leaves);
            return self.store_ends(&lines, row.index);
        };
        let within = |row: &RowLines<'c>| RowLines { lines: row.lines.within(ir, inside), value: row.value };
        let inner: Vec<RowLines<'c>> = lines.iter().map(within).collect();
        let has_lines = inner[0].lines.has_lines(ir);
        // A row that is shorter than a line may be read as rows, too.
        let is_read = match covering.has_runs() {
            true => ir.or(has_lines, existing.is_within(ir, inside)),
            false => has_lines,
        };
        ir.on_each_side(is_read, |exists| {
            let lines = if exists { &inner } else { &lines };
            self.open_covering(&covering, Bounds::where_whole(exists));
            self.store_lines(lines, row.index, leaves);
            if exists && covering.has_runs() {
                return ir.unless(inner[0].lines.are_all_of(ir, existing), || {
                    let inside = inside.both(ir, existing);
                    let ends: Vec<RowLines<'c>> = lines.iter().map(|row| row.only(inside)).collect();
                    self.store_ends(&ends, row.index);
                    self.open_covering(&covering, Bounds::Checked);
                    self.store_outside(tiles, row.index, existing, inside);
                });
            }
            self.open_covering(&covering, Bounds::Checked);
            self.store_ends(lines, row.index);
        });
    }

    /// Stores what there is of a row of each tile on both sides of these places, one by one: a border of few elements.
    fn store_outside(
        &mut self,
        tiles: &[StoredTile<'c>],
        row: &[IntValue<'c>],
        all: IndexRange<'c>,
        inside: IndexRange<'c>,
    ) {
        let (ir, addresses) = (self.ir, self.row_addresses(tiles, row));
        each_side(ir, all, inside, |side| {
            ir.each(side.by(ir.i64(1)), LoopHint::AsItIs, |place| {
                self.store_element(tiles, &addresses, row, place);
            });
        });
    }

    /// How a row of each tile is stored, so many elements at a time.
    fn lines_of_tiles(&self, tiles: &[StoredTile<'c>], row: Row<'_, 'c>, elements: i64) -> Vec<RowLines<'c>> {
        let lines_of = |window| self.lines_of_row(window, row, elements);
        let first = lines_of(&tiles[0].window);
        let others = tiles[1..].iter().map(|tile| {
            let lines = lines_of(&tile.window).beside(self.ir, &first);
            RowLines { lines, value: tile.value }
        });
        std::iter::once(RowLines { lines: first.clone(), value: tiles[0].value }).chain(others).collect()
    }

    /// Stores the elements of a row of each tile in these places, one by one.
    pub(in crate::cpu) fn store_elements(
        &mut self,
        tiles: &[StoredTile<'c>],
        row: &[IntValue<'c>],
        Existing { begin, end }: Existing<'c>,
    ) {
        let (ir, addresses) = (self.ir, self.row_addresses(tiles, row));
        let length = begin.map_or(end, |begin| ir.sub(end, begin));
        each_index(ir, length, length.get_sign_extended_constant().unwrap_or(i64::MAX), |i| {
            let place = begin.map_or(i, |begin| ir.add(begin, i));
            self.store_element(tiles, &addresses, row, place);
        });
    }

    /// Where a row of each tile lies in its tensor.
    fn row_addresses(&self, tiles: &[StoredTile<'c>], row: &[IntValue<'c>]) -> Vec<PointerValue<'c>> {
        tiles.iter().map(|tile| self.row_address(&tile.window, row)).collect()
    }

    /// Stores the element of each tile in a place of a row, which lies at these addresses.
    fn store_element(
        &mut self,
        tiles: &[StoredTile<'c>],
        addresses: &[PointerValue<'c>],
        row: &[IntValue<'c>],
        place: IntValue<'c>,
    ) {
        let values: Vec<ValueId> = tiles.iter().map(|tile| tile.value).collect();
        let elements = self.elements(&values, &[row, &[place]].concat());
        for ((tile, &address), element) in tiles.iter().zip(addresses).zip(elements) {
            self.write(&tile.window, address, place, element);
        }
    }
}
