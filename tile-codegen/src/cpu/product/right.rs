//! `b` as register blocks read it: packed in panels, or where it is.
//!
//! What packing does for `b` is to have it near, in the order in which register blocks read it, each time that they do. A
//! product of no more rows than a register block has reads each element once: there packing is a copy for nothing, and
//! vectors are converted, and rows that are multiplied at once joined, on their way to the registers.

use super::super::buffer::Buffer;
use super::super::region::Emitter;
use super::beside::Turns;
use super::factor::{Factor, Strided};
use super::plan::Plan;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

/// `b` of a product whose elements are read once.
pub(super) struct InPlace<'c> {
    pub(super) from: Strided<'c>,
    /// Whether it is read where it is: all of it exists.
    pub(super) is_read: IntValue<'c>,
}

/// Where register blocks read `b`.
pub(super) enum Right<'c> {
    Packed(Buffer<'c>),
    InPlace(Strided<'c>),
}

/// The columns of `b` that a register block reads.
pub(super) enum Panel<'c> {
    Packed(Buffer<'c>),
    /// From this column on.
    InPlace(Strided<'c>, IntValue<'c>),
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// `b` of a matrix where it is; `None` where it is packed.
    pub(super) fn b_in_place(&self, b: ValueId, plan: &Plan, matrix: IntValue<'c>) -> Option<InPlace<'c>> {
        let ir = self.ir;
        match self.factor(b, matrix, plan) {
            Factor::Strided(from) if from.contiguous == 1 && plan.reads_b_once() => {
                let ends = from.valid.into_iter().flatten().zip([plan.k, plan.n]);
                let whole = ends.map(|(end, extent)| ir.icmp(IntPredicate::EQ, end, ir.i64(extent)));
                let is_read = whole.fold(ir.bool(true), |all, is_whole| ir.and(all, is_whole));
                Some(InPlace { from, is_read })
            }
            _ => None,
        }
    }

    /// `b` of the multiplication of these turns of a loop where it is; `None` where it is packed.
    pub(super) fn b_of_turns_in_place(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        turns: Turns<'c>,
    ) -> Option<InPlace<'c>> {
        let rows = if plan.reads_b_once() { self.rows_of_b(product, plan, turns)? } else { return None };
        Some(InPlace { from: rows.from, is_read: rows.is_whole })
    }

    /// The columns of `b` from one on that is the first of a panel.
    pub(super) fn panel_of(&self, right: &Right<'c>, plan: &Plan, column: IntValue<'c>) -> Panel<'c> {
        let ir = self.ir;
        match right {
            Right::Packed(buffer) => {
                let number = ir.udiv(column, ir.i64(plan.block.width()));
                Panel::Packed(self.buffers.further(buffer, ir.mul(number, ir.i64(plan.panel()))))
            }
            Right::InPlace(from) => Panel::InPlace(from.clone(), column),
        }
    }

    /// What of `b` register blocks multiply at once: at this step along K, the vector of this number.
    pub(super) fn load_right(
        &self,
        panel: &Panel<'c>,
        plan: &Plan,
        step: IntValue<'c>,
        vector: i64,
    ) -> VectorValue<'c> {
        let (ir, lanes, group) = (self.ir, plan.block.lanes, plan.contraction.group());
        match panel {
            Panel::Packed(buffer) => {
                let row = ir.mul(step, ir.i64(plan.block.width() * group));
                let at = ir.add(row, ir.i64(vector * lanes * group));
                self.buffers.load_lanes(buffer, at, None, (lanes * group) as u32)
            }
            Panel::InPlace(from, column) => {
                let column = ir.add(*column, ir.i64(vector * lanes));
                self.joined_rows(from, plan, [ir.mul(step, ir.i64(group)), column])
            }
        }
    }

    /// Vectors of the rows that are multiplied at once, from this row on, joined as they are packed.
    pub(super) fn joined_rows(
        &self,
        from: &Strided<'c>,
        plan: &Plan,
        [row, column]: [IntValue<'c>; 2],
    ) -> VectorValue<'c> {
        let ir = self.ir;
        let lines = (0..plan.contraction.group()).map(|further| {
            let address = self.address_in(from, [ir.add(row, ir.i64(further)), column]);
            self.packed_vector(from, address, None, plan.block.lanes as u32, plan)
        });
        ir.interleaved(lines.collect())
    }
}
