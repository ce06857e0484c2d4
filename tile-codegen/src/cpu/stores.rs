//! Stores of tiles through partition views: the elements of each row that exist.

use super::elements::count;
use super::parts::RowOf;
use super::reduce::lanes_of;
use super::region::Emitter;
use super::views::Window;
use inkwell::values::IntValue;
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

/// Emits the store of the row of an index.
type StoreRow<'r, 'a, 'c> = dyn FnMut(&mut Emitter<'a, 'c>, &[IntValue<'c>]) + 'r;

impl<'a, 'c> Emitter<'a, 'c> {
    /// A store, unless what made the tile has stored it.
    pub(super) fn store_unless_written(&mut self, data: &'a OpData) {
        let Some(&is_written) = self.written.get(&data.operands[1]) else { return self.store(data) };
        let ir = self.ir;
        let store = || {
            self.store(data);
            Vec::new()
        };
        ir.if_else(is_written, Vec::new, store);
    }

    fn store(&mut self, data: &'a OpData) {
        let window = self.window_of(data);
        let value = data.operands[1];
        if let Some(load) = self.definition(value).and_then(|turned| self.fusion.turned_load(turned)) {
            return self.store_turned(&window, value, load);
        }
        let (&width, rows) = window.shape().split_last().expect("verified: a tensor has rank 1 or more");
        let (loads, gathers) = (self.fusion.streams_of(data), self.fusion.gathers_of(data));
        let range_of = |emitter: &Self, row: &[IntValue<'c>], whole| {
            if whole { (None, emitter.ir.i64(width)) } else { emitter.row_range(&window, row) }
        };
        let each_row = |emitter: &mut Self, whole, store: &mut StoreRow<'_, 'a, 'c>| {
            emitter.each_row(rows, &mut |emitter, row| {
                let (begin, end) = range_of(emitter, row, whole);
                let range = (begin.unwrap_or_else(|| emitter.ir.i64(0)), end);
                emitter.with_gathered_rows(&gathers, row, range, &mut |emitter| store(emitter, row));
            });
        };
        let further = std::slice::from_ref(&window);
        match self.elements_of_line(&window) {
            None => self.with_streams(&loads, further, &mut |emitter, whole| {
                each_row(emitter, whole, &mut |emitter, row| {
                    let range = range_of(emitter, row, whole);
                    emitter.store_elements(&window, row, range, value);
                });
            }),
            Some(line) => self.with_rows(data, window.shape(), further, &mut |emitter, whole| {
                each_row(emitter, whole, &mut |emitter, index| {
                    let row = RowOf { data, shape: window.shape(), index, lanes: line, whole };
                    emitter.store_row(&window, row);
                });
            }),
        }
    }

    /// Stores the elements of a row that exist, a line at a time.
    fn store_row(&mut self, window: &Window<'c>, row: RowOf<'_, 'a, 'c>) {
        let (_, end) = self.row_range(window, row.index);
        let covering = self.covering(row, end);
        let leaves = self.leaves(row.data, &covering);
        let elements = if leaves.is_some() { lanes_of(window.width()) } else { row.lanes };
        let lines = self.lines_of_row(window, (row.index, row.whole), elements);
        let value = row.data.operands[1];
        self.with_covering(&covering, &mut |emitter| emitter.store_lines(&lines, row.index, value, leaves));
    }

    /// Stores the elements of a row from `begin`, or the first, to `end`, one by one.
    pub(super) fn store_elements(
        &mut self,
        window: &Window<'c>,
        row: &[IntValue<'c>],
        (begin, end): (Option<IntValue<'c>>, IntValue<'c>),
        value: ValueId,
    ) {
        let (ir, address) = (self.ir, self.row_address(window, row));
        let length = begin.map_or(end, |begin| ir.sub(end, begin));
        count(ir, length, length.get_sign_extended_constant().unwrap_or(i64::MAX), |i| {
            let i = begin.map_or(i, |begin| ir.add(begin, i));
            let element = self.element(value, &[row, &[i]].concat());
            self.write(window, address, i, element);
        });
    }
}
