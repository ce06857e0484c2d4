//! Stores of tiles through partition views: the elements of each row that exist.

use super::elements::count;
use super::parts::RowOf;
use super::reduce::LANES;
use super::region::Emitter;
use super::views::Window;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{Op, ValueId};

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

    /// Where the block's own tile is stored.
    pub(super) fn stored_window(&self, store: &OpData) -> Window<'c> {
        self.window(store.operands[0], &self.tile, store.op == Op::StoreMasked)
    }

    fn store(&mut self, data: &'a OpData) {
        let window = self.stored_window(data);
        let value = data.operands[1];
        if let Some(load) = self.definition(value).and_then(|turned| self.fusion.turned_load(turned)) {
            return self.store_turned(&window, value, load);
        }
        let (_, rows) = window.shape().split_last().expect("verified: a tensor has rank 1 or more");
        let gathers = self.fusion.gathers_of(data);
        self.each_row(rows, &mut |emitter, index| {
            let (begin, end) = emitter.row_range(&window, index);
            let range = (begin.unwrap_or_else(|| emitter.ir.i64(0)), end);
            emitter.with_gathered_rows(&gathers, index, range, &mut |emitter| {
                emitter.store_row(data, &window, index);
            });
        });
    }

    /// Stores the elements of a row that exist.
    fn store_row(&mut self, data: &'a OpData, window: &Window<'c>, index: &[IntValue<'c>]) {
        let value = data.operands[1];
        let row = RowOf { data, shape: window.shape(), index, lanes: LANES };
        let range = self.row_range(window, index);
        let covering = self.covering(row, range.1);
        let Some(line) = self.elements_of_line(window) else {
            return self.with_covering(&covering, &mut |emitter| {
                emitter.store_elements(window, index, range, value);
            });
        };
        let leaves = self.leaves(data, &covering);
        let lines = self.lines_of_row(window, index, if leaves.is_some() { LANES } else { line });
        self.with_covering(&covering, &mut |emitter| emitter.store_lines(&lines, index, value, leaves));
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
