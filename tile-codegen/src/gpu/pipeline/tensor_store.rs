//! Stores of what warpgroups have summed, by copies: a warpgroup writes its rows to a panel in shared memory, and one of
//! its threads has that copied while the next panel is written.
//!
//! A panel's lines are swizzled as the tensor map says, which also keeps the lanes of a warp in different banks. Of elements
//! of 16 bits a warp stores matrices, so that each lane writes 16 bytes of a row.

use super::named_barriers::STORES;
use crate::emit::Value;
use crate::gpu::coordinates::Linear;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::gpu::WIDEST;
use tile_ir::gpu::pipeline::{PANEL_ROW_BYTES, TensorStore, WARPGROUP, WARPGROUP_BYTES};
use tile_ir::kernel::OpData;
use tile_ir::tensor_map::Swizzle;
use tile_ir::{Dim, ValueId};
use tile_layout::linear::Distribution;

/// The largest coordinate that a copy takes.
const MOST_COORDINATE: i64 = i32::MAX as i64;

/// A panel of a tile: the first row in the first warpgroup, the first column, and the first slots of what is written to it
/// at once, with their places in it.
struct Panel {
    row: u64,
    column: u64,
    groups: Vec<(u64, u64)>,
}

/// A store by panels, as the running thread does its part.
struct Storing<'s, 'c> {
    store: &'s TensorStore,
    tile: ValueId,
    /// Where what the thread writes lies in a panel.
    own: Linear<'c>,
    /// Slots that it writes at once.
    width: u64,
    /// The position of the tile's first element along each axis, an i32.
    first: Vec<IntValue<'c>>,
}

/// Slots that are neighbours in a row where no matrix store writes several rows.
const NEIGHBOURS: u64 = 2;

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn tensor_store(&mut self, data: &OpData, store: &TensorStore) {
        let (ir, tile) = (self.ir, data.operands[1]);
        let bytes = self.dtype(tile).bytes() as u64;
        let place = |position: &[u64]| place_in_panel(position[store.rows], position[store.columns] * bytes);
        let place = |(bit, position): (usize, &[u64])| match 1 << bit {
            ..WARPGROUP => place(position),
            group => group / WARPGROUP * WARPGROUP_BYTES,
        };
        let (written, run, width) = match &store.matrices {
            Some(matrices) => (matrices.rows(), WIDEST / bytes, matrices.width()),
            None => (self.scheduled.distribution(tile), NEIGHBOURS, NEIGHBOURS),
        };
        let bits: Vec<u64> = written.thread_bits().enumerate().map(place).collect();
        let own = Linear::of(ir, self.running_thread(), &bits);
        let storing = Storing { store, tile, own, width, first: self.first_element_stored(data) };
        let panels = panels(written, run, width, store, bytes);
        for (number, panel) in (0..).zip(&panels) {
            let buffer = number % store.panels() * store.panel_bytes();
            if number == 0 {
                self.begin_panels();
            }
            if number >= store.panels() {
                // The thread that waited for the copy of what lay here tells the others.
                self.meet_warpgroup();
            }
            self.write_panel(&storing, panel, buffer);
            ir.intrinsic("llvm.nvvm.fence.proxy.async.shared_cta", &[], &[]);
            self.meet_warpgroup();
            let is_last = number + 1 == panels.len() as u64;
            self.where_it_leads(|| {
                self.copy_panel(&storing, panel, buffer);
                if !is_last && number + 1 >= store.panels() {
                    self.await_panels_read(store.panels() - 1);
                }
            });
        }
        if self.panels_lie_over_factors() {
            self.await_panels_read(0);
        }
        self.pipelined.has_copied_panels = true;
    }

    /// Waits until panels may be written: for the copies of what lay there, and for whoever brought factors there.
    fn begin_panels(&self) {
        if self.panels_lie_over_factors() {
            self.sync();
        } else if self.may_copy_panels() {
            // Of the tile before, they had all the time that this one's products took.
            self.await_panels_read(0);
            self.meet_warpgroup();
        }
    }

    /// Whether panels lie where consumers bring factors: then copies have read them when their store is over.
    fn panels_lie_over_factors(&self) -> bool {
        !self.scheduled.pipelines().tensor_memory().brought().is_empty()
    }

    /// Whether copies of panels may go on where a store begins: it isn't the first, or may be executed again.
    pub(in crate::gpu) fn may_copy_panels(&self) -> bool {
        self.pipelined.has_copied_panels || self.depth > 0
    }

    /// Waits until all but so many of the thread's copies have read their panels. Threads that have none go on; a branch
    /// around it would keep `ptxas` from writing sums while it computes others.
    fn await_panels_read(&self, going_on: u64) {
        let going_on = self.i32(going_on).into();
        self.ir.intrinsic("llvm.nvvm.cp.async.bulk.wait.group.read", &[], &[going_on]);
    }

    /// Waits until what the thread has had copied is written. A fence says nothing of copies (PTX ISA, "Memory Consistency
    /// Model", "Asynchronous operations").
    pub(in crate::gpu) fn complete_panels(&self) {
        if self.scheduled.pipelines().has_panels() && self.may_copy_panels() {
            self.ir.intrinsic("llvm.nvvm.cp.async.bulk.wait.group", &[], &[self.i32(0).into()]);
        }
    }

    /// Waits for the copies of the last panels, which are gone when the block is.
    pub(in crate::gpu) fn end_stores(&self) {
        if self.pipelined.has_copied_panels && !self.panels_lie_over_factors() {
            self.await_panels_read(0);
        }
    }

    /// Does something in one thread of each warpgroup.
    fn where_it_leads(&self, action: impl FnOnce()) {
        let ir = self.ir;
        let number = ir.and(self.thread, self.i32(WARPGROUP - 1));
        ir.if_then(ir.icmp(IntPredicate::EQ, number, self.i32(0)), action);
    }

    /// Waits for the warpgroup.
    fn meet_warpgroup(&self) {
        let barrier = self.ir.add(self.running_warpgroup(), self.i32(STORES));
        self.dialect.barrier_of(self.ir, barrier, WARPGROUP);
    }

    /// Writes the running thread's part of a panel, so many bytes into its warpgroup's part of shared memory.
    fn write_panel(&self, storing: &Storing<'_, 'c>, panel: &Panel, buffer: u64) {
        let (ir, dtype, fragment) = (self.ir, self.dtype(storing.tile), self.tile(storing.tile));
        let panels = self.scheduled.pipelines().panels();
        for &(slot, place) in &panel.groups {
            let place = storing.own.at(ir, place, panels + buffer).value(ir);
            let address = ir.element(ir.int_type(8).into(), self.shared, place);
            let slots = slot..slot + storing.width;
            let values: Vec<Value<'c>> = slots.map(|slot| fragment.get(slot)).collect();
            match &storing.store.matrices {
                Some(matrices) => {
                    let words = ir.words(&values, dtype);
                    self.dialect.store_matrices(ir, address, &words, matrices.transposed);
                }
                None => ir.store_group(address, dtype, &values),
            }
        }
    }

    /// Has the panel copied that lies so many bytes into its warpgroup's part of shared memory.
    fn copy_panel(&self, storing: &Storing<'_, 'c>, panel: &Panel, buffer: u64) {
        let (ir, warpgroup, store) = (self.ir, self.running_warpgroup(), storing.store);
        let panels = self.i32(self.scheduled.pipelines().panels() + buffer);
        let place = ir.add(panels, ir.mul(warpgroup, self.i32(WARPGROUP_BYTES)));
        let source = ir.element(ir.int_type(8).into(), self.shared, place);
        let mut operands: Vec<Value<'c>> = vec![source.into(), self.maps[store.map].into()];
        let second = self.second_warpgroup(storing.tile);
        let within = |axis: usize, begin: u64| match second.map_or(0, |position| position[axis]) {
            0 => self.i32(begin),
            step => ir.add(ir.mul(warpgroup, self.i32(step)), self.i32(begin)),
        };
        operands.extend(store.axes.iter().map(|&axis| {
            let within = match axis {
                axis if axis == store.rows => within(axis, panel.row),
                axis if axis == store.columns => within(axis, panel.column),
                _ => self.i32(0),
            };
            Value::from(ir.add(storing.first[axis], within))
        }));
        operands.extend([Value::from(ir.i64(0)), ir.bool(false).into()]);
        let name = format!("llvm.nvvm.cp.async.bulk.tensor.s2g.tile.{}d", store.axes.len());
        ir.intrinsic(&name, &[], &operands);
        ir.intrinsic("llvm.nvvm.cp.async.bulk.commit.group", &[], &[]);
    }

    /// The position of the stored tile's first element along each axis, an i32; far outside, one that is outside.
    fn first_element_stored(&self, data: &OpData) -> Vec<IntValue<'c>> {
        let view = self.instance.ty(data.operands[0]).as_partition().expect("verified: a view");
        self.first_position(&self.grid.tile_index, &view.steps)
    }

    /// The position of the first element of a tile with this index along each axis, an i32; of tiles far outside, one that
    /// is outside.
    pub(in crate::gpu) fn first_position(&self, index: &[IntValue<'c>], steps: &[Dim]) -> Vec<IntValue<'c>> {
        let ir = self.ir;
        let most = ir.i64(MOST_COORDINATE);
        let least = |number| ir.lesser(number, most);
        let position = |(&index, step): (&IntValue<'c>, &Dim)| {
            let step = step.as_const().expect("an instance's steps are numbers");
            ir.resize(least(ir.mul(least(index), ir.i64(step))), 32, false)
        };
        index.iter().zip(steps).map(position).collect()
    }
}

/// The byte of a panel at which an element lies that is so many bytes into a row of the tile. Linear over GF(2) in the bits
/// of both.
fn place_in_panel(row: u64, bytes: u64) -> u64 {
    Swizzle::Bytes128.apply(row * PANEL_ROW_BYTES + bytes % PANEL_ROW_BYTES)
}

/// The panels of a tile whose elements lie as sums do, written in groups of `width` slots: each where the next run of
/// elements of `written` is, which are more where some lanes say nothing that is heard.
fn panels(written: &Distribution, run: u64, width: u64, store: &TensorStore, bytes: u64) -> Vec<Panel> {
    let columns = PANEL_ROW_BYTES / bytes;
    let mut panels: Vec<Panel> = Vec::new();
    for (number, first) in (0..).zip((0..written.slots()).step_by(run as usize)) {
        let position = written.place(first, 0);
        let (row, column) = (position[store.rows], position[store.columns]);
        let start = (row / store.panel_rows * store.panel_rows, column / columns * columns);
        let group = (number * width, place_in_panel(row % store.panel_rows, column * bytes));
        match panels.iter_mut().find(|panel| (panel.row, panel.column) == start) {
            Some(panel) => panel.groups.push(group),
            None => panels.push(Panel { row: start.0, column: start.1, groups: vec![group] }),
        }
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_panel_are_linear_and_all_different() {
        const ROWS: u64 = 128;
        let mut seen = vec![false; (ROWS * PANEL_ROW_BYTES) as usize];
        for row in 0..ROWS {
            for byte in 0..PANEL_ROW_BYTES {
                let place = place_in_panel(row, byte);
                assert_eq!(place, place_in_panel(row, 0) ^ place_in_panel(0, byte));
                assert!(!std::mem::replace(&mut seen[place as usize], true));
            }
        }
        // The second piece of row 3 lies where the third of an even one would (PTX ISA, "Swizzling modes").
        assert_eq!(place_in_panel(3, 16), 3 * 128 + 32);
    }
}
