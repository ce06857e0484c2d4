//! What several iterations of a loop read of the right factor, as one matrix with a name.

use super::super::region::Emitter;
use super::Needed;
use super::factor::{Factor, Strided};
use super::plan::Plan;
use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{RegionId, ValueId};

/// A loop that adds products to a tile.
#[derive(Clone, Copy)]
pub(super) struct ProductLoop<'c> {
    pub(super) counter: ValueId,
    pub(super) body: RegionId,
    /// Its first turn, and where it ends.
    pub(super) range: [IntValue<'c>; 2],
}

/// The turns of a loop that a multiplication takes.
#[derive(Clone, Copy)]
pub(super) struct Turns<'c> {
    pub(super) looped: ProductLoop<'c>,
    pub(super) first: IntValue<'c>,
    pub(super) last: IntValue<'c>,
}

impl<'c> Turns<'c> {
    /// Those of a loop's multiplication that begins with this turn.
    pub(super) fn of_loop(
        ir: &Ir<'c>,
        plan: &Plan,
        looped: ProductLoop<'c>,
        first: IntValue<'c>,
    ) -> Turns<'c> {
        let turns = ir.lesser(ir.sub(looped.range[1], first), ir.i64(plan.turns));
        Turns { looped, first, last: ir.sub(ir.add(first, turns), ir.i64(1)) }
    }

    /// Those of the same loop's multiplication that begins with this turn.
    pub(super) fn from(&self, ir: &Ir<'c>, plan: &Plan, first: IntValue<'c>) -> Turns<'c> {
        Turns::of_loop(ir, plan, self.looped, first)
    }

    /// The multiplication's number in the loop.
    pub(super) fn number(&self, ir: &Ir<'c>, plan: &Plan) -> IntValue<'c> {
        ir.udiv(ir.sub(self.first, self.looped.range[0]), ir.i64(plan.turns))
    }

    /// How many multiplications the loop has.
    pub(super) fn of(&self, ir: &Ir<'c>, plan: &Plan) -> IntValue<'c> {
        let [begin, end] = self.looped.range;
        ir.udiv(ir.add(ir.sub(end, begin), ir.i64(plan.turns - 1)), ir.i64(plan.turns))
    }
}

/// The rows of `b` that several turns read.
pub(super) struct Rows<'c> {
    pub(super) from: Strided<'c>,
    address: IntValue<'c>,
    stride: IntValue<'c>,
    pub(super) depth: IntValue<'c>,
    /// Columns that exist, and rows of the last turn.
    pub(super) exist: [IntValue<'c>; 2],
    /// Whether each turn's come behind those of the turn before, and all but the last turn's exist.
    is_one: IntValue<'c>,
    /// Whether they are one and all of them exist.
    pub(super) is_whole: IntValue<'c>,
}

/// What tells a matrix from others that the same load reads: its address, the distance of its lines, and how much of it is
/// there and packed. Zeros are none.
pub(super) type Name<'c> = [IntValue<'c>; 3];

impl<'c> Rows<'c> {
    /// The matrix's name where so much of it is packed; none of turns that aren't one matrix.
    pub(super) fn name(&self, ir: &Ir<'c>, plan: &Plan, needed: Needed<'c>) -> Name<'c> {
        let [columns, last] = self.exist;
        let parts = [(needed.columns, plan.n), (last, plan.k), (self.depth, plan.depth() + plan.block.steps)];
        let extents =
            parts.into_iter().fold(columns, |all, (part, most)| ir.add(ir.mul(all, ir.i64(most + 1)), part));
        [self.address, self.stride, extents].map(|number| ir.select_int(self.is_one, number, ir.i64(0)))
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// What these turns of a loop read of `b`; `None` where nobody can know before them.
    pub(super) fn rows_of_b(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        turns: Turns<'c>,
    ) -> Option<Rows<'c>> {
        let ir = self.ir;
        let [a, b] = [0, 1].map(|factor| product.operands[factor]);
        let Turns { looped, first, last } = turns;
        if ![a, b].into_iter().all(|factor| self.is_known_ahead(factor, looped)) {
            return None;
        }
        [a, b].into_iter().for_each(|factor| self.emit_constants_of(factor));
        self.bind_scalars(&[looped.counter], &[last.into()]);
        let (a, end) = (self.factor(a, ir.i64(0), plan), self.checked_factor(b, plan)?);
        let of_last = self.depth_of(&a, &Factor::Strided(end.clone()), plan);
        self.bind_scalars(&[looped.counter], &[first.into()]);
        let begin = self.checked_factor(b, plan)?;
        let (before, k) = (ir.sub(last, first), ir.i64(plan.k));
        let ends = |strided: &Strided<'c>| strided.valid.expect("checked");
        let [[rows, columns], [last_rows, last_columns]] = [ends(&begin), ends(&end)];
        let memory = self.memory_of(&begin)?;
        let row = if memory.contiguous == 1 { memory.stride } else { ir.i64(1) };
        let bytes = ir.mul(ir.mul(ir.mul(before, k), row), ir.i64(memory.element_bytes));
        let (begin_at, end_at) = (ir.address(memory.address), ir.address(self.memory_of(&end)?.address));
        let is_one_turn = ir.icmp(IntPredicate::EQ, before, ir.i64(0));
        // Turns may go on beyond the matrix. Where the last one has a row, those between are whole.
        let begins_inside = ir.icmp(IntPredicate::NE, last_rows, ir.i64(0));
        let is_one = ir.all([
            ir.or(is_one_turn, ir.and(ir.icmp(IntPredicate::EQ, rows, k), begins_inside)),
            ir.icmp(IntPredicate::EQ, columns, last_columns),
            ir.icmp(IntPredicate::EQ, ir.sub(end_at, begin_at), bytes),
        ]);
        let is_whole = ir.all([
            is_one,
            ir.icmp(IntPredicate::UGE, last_rows, of_last),
            ir.icmp(IntPredicate::EQ, columns, ir.i64(plan.n)),
        ]);
        Some(Rows {
            from: begin,
            address: begin_at,
            stride: memory.stride,
            depth: ir.add(ir.mul(before, k), of_last),
            exist: [columns, last_rows],
            is_one,
            is_whole,
        })
    }
}
