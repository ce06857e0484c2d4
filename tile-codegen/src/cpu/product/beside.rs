//! What the next multiplication reads of `b` is packed beside the present one.
//!
//! Packing waits for memory, and register blocks for nothing. So while they multiply they also copy what of `b` comes next,
//! that of the loop's next turns or of the next block's first ones, a few vectors in every chunk of steps, which the register
//! block before has asked for. There are two places for what is packed, which take turns.
//!
//! What comes next is a guess that is right where a load's index is the loop's counter and the block's index. So an entry
//! remembers which matrix it was, and the next multiplication looks whether it is its own. Nothing is read that the tensor
//! doesn't have, whatever the guess, and a tensor that the kernel writes isn't read before its time.

use super::super::buffer::Buffer;
use super::super::fuse::Fusion;
use super::super::region::Emitter;
use super::ahead::Next;
use super::cell;
use super::factor::{Factor, Strided, behind_transposition, streamed_load};
use super::plan::{Plan, Products};
use super::right::InPlace;
use crate::emit::Ir;
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, RegionId, ValueId};

/// Vectors that a chunk of steps copies at most. More come at the rate of memory alone, and register blocks that wait for them
/// take longer than packing them would.
const MOST_OF_CHUNK: i64 = 4;

/// Vectors that a chunk of steps copies so that all register blocks together copy all: neighbours in a row. `None` where these
/// would be too many.
fn vectors_of_chunk(plan: &Plan) -> Option<i64> {
    let (chunks, of_row) = (plan.chunks() * plan.blocks(), plan.n / plan.block.lanes);
    let least = (plan.depth() / plan.contraction.group() * of_row + chunks - 1) / chunks;
    (least..=of_row.min(MOST_OF_CHUNK)).find(|vectors| of_row % vectors == 0)
}

/// Whether a loop's `b` is packed beside: whole vectors of a tensor that nothing writes, along its columns.
pub(super) fn is_packed_beside(
    instance: &Instance,
    fusion: &Fusion<'_>,
    product: &OpData,
    plan: &Plan,
) -> bool {
    let (tile, is_transposed) = behind_transposition(fusion, product.operands[1]);
    let view = streamed_load(fusion, tile).map(|data| data.operands[0]);
    let is_written = |view| instance.ty(view).as_partition().is_none_or(|partition| partition.tensor.mutable);
    let has_time = plan.n % plan.block.lanes == 0 && vectors_of_chunk(plan).is_some();
    !is_transposed && has_time && view.is_some_and(|view| !is_written(view))
}

/// What an entry remembers of a product's two places for `b`.
#[derive(Clone)]
pub(super) struct Places<'c> {
    /// Which of them is read at present.
    present: PointerValue<'c>,
    /// The matrix that the other one has: its address, the distance of its rows and how many there are; zeros for none.
    matrix: [PointerValue<'c>; 3],
    progress: Progress<'c>,
}

impl<'c> Places<'c> {
    fn new(ir: &Ir<'c>) -> Places<'c> {
        let number = || cell(ir, ir.context.i64_type(), "beside");
        let address = || cell(ir, ir.context.ptr_type(AddressSpace::default()), "beside");
        let progress = Progress { from: address(), to: address(), column: number(), left: number() };
        Places { present: number(), matrix: [number(), number(), number()], progress }
    }
}

/// How far the next matrix has been copied, in pieces of what a chunk of steps copies. Addresses move on from piece to piece:
/// what computes them takes places of arithmetic from multiply-adds.
#[derive(Clone, Copy)]
struct Progress<'c> {
    /// The rows of the next piece, in the tensor.
    from: PointerValue<'c>,
    /// The same in the first panel.
    to: PointerValue<'c>,
    /// The first column of the next piece.
    column: PointerValue<'c>,
    /// Pieces that are missing.
    left: PointerValue<'c>,
}

impl Products<'_> {
    /// Makes the places of an entry, at its begin, by the tile that a product gives.
    pub(super) fn places<'c>(&self, ir: &Ir<'c>) -> HashMap<ValueId, Places<'c>> {
        self.packed_beside().map(|product| (product, Places::new(ir))).collect()
    }
}

/// Where a multiplication has its packed `b`.
pub(super) struct PackedB<'c> {
    pub(super) buffer: Buffer<'c>,
    /// Whether nothing needs to be packed: the multiplication before has done it, or `b` is read where it is.
    pub(super) is_there: Option<IntValue<'c>>,
    pub(super) in_place: Option<InPlace<'c>>,
}

/// What a multiplication packs of the next one's `b`.
pub(super) struct Beside<'c> {
    from: Strided<'c>,
    to: Buffer<'c>,
    /// Whether anything is packed.
    pub(super) is_packed: IntValue<'c>,
    progress: Progress<'c>,
    /// Vectors of a row that a chunk of steps copies.
    of_chunk: i64,
    /// Rows of `b` from what a chunk copies to what the next register block's does.
    of_block: i64,
}

/// The turns of a loop that a multiplication takes, and the loop's counter and body.
#[derive(Clone, Copy)]
pub(super) struct Turns<'c> {
    pub(super) counter: ValueId,
    pub(super) body: RegionId,
    pub(super) first: IntValue<'c>,
    pub(super) last: IntValue<'c>,
}

/// The rows of `b` that several turns read as one matrix.
pub(super) struct Rows<'c> {
    pub(super) from: Strided<'c>,
    address: IntValue<'c>,
    stride: IntValue<'c>,
    pub(super) depth: IntValue<'c>,
    /// Whether all of them exist, and each turn's come behind those of the turn before.
    pub(super) is_whole: IntValue<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Where the multiplication of these turns has its packed `b`, which from now on is the present one.
    pub(super) fn packed_b(&mut self, product: &'a OpData, plan: &Plan, turns: Turns<'c>) -> PackedB<'c> {
        let (ir, i64) = (self.ir, self.ir.context.i64_type());
        let result = product.results[0];
        let Some(places) = self.memories.places.get(&result).cloned() else {
            let in_place = self.b_of_turns_in_place(product, plan, turns);
            return self.only_packed_b(result, plan, in_place);
        };
        let load = |cell| ir.load(i64.into(), cell).into_int_value();
        let present = load(places.present);
        let there = places.matrix.map(load);
        let rows = self.rows_of_b(product, plan, turns);
        let is_there = rows.map_or(ir.bool(false), |rows| {
            let both = rows.matrix().into_iter().zip(there);
            ir.all(both.map(|(now, there)| ir.icmp(IntPredicate::EQ, now, there)))
        });
        let present = ir.select_int(is_there, ir.sub(ir.i64(1), present), present);
        ir.store(places.present, present.into());
        let buffer = self.place_of_packed_b(result, plan, present);
        PackedB { buffer, is_there: Some(is_there), in_place: None }
    }

    /// Where a product has its packed `b` that nothing has packed before.
    pub(super) fn only_packed_b(
        &self,
        result: ValueId,
        plan: &Plan,
        in_place: Option<InPlace<'c>>,
    ) -> PackedB<'c> {
        let buffer = self.place_of_packed_b(result, plan, self.ir.i64(0));
        PackedB { buffer, is_there: in_place.as_ref().map(|in_place| in_place.is_read), in_place }
    }

    /// The place of this number for the packed `b` of the product that gives a tile.
    fn place_of_packed_b(&self, result: ValueId, plan: &Plan, number: IntValue<'c>) -> Buffer<'c> {
        let ir = self.ir;
        let first = self.buffers.packed(result, 1, plan.packed).expect("`b` is always packed");
        self.buffers.further(&first, ir.mul(number, ir.i64(plan.packed_b())))
    }

    /// What the multiplication that comes next reads of `b`, to be packed beside the present one; `None` where it can't be.
    pub(super) fn beside(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        (present, next): (Turns<'c>, &Next<'c>),
        end: IntValue<'c>,
    ) -> Option<Beside<'c>> {
        let (ir, result) = (self.ir, product.results[0]);
        let places = self.memories.places.get(&result)?.clone();
        let turns = ir.lesser(ir.sub(end, next.turn), ir.i64(plan.turns));
        let last = ir.sub(ir.add(next.turn, turns), ir.i64(1));
        let turns = Turns { first: next.turn, last, ..present };
        let comes = ir.or(next.is_here, self.differs(&next.scalars));
        let rows = self.as_next(present.counter, next, |emitter| emitter.rows_of_b(product, plan, turns))?;
        let is_packed = ir.and(comes, rows.is_whole);
        let matrix = rows.matrix();
        for (cell, value) in places.matrix.into_iter().zip(matrix) {
            ir.store(cell, ir.select_int(is_packed, value, ir.i64(0)).into());
        }
        let of_chunk = vectors_of_chunk(plan)?;
        let number = ir.load(ir.context.i64_type().into(), places.present).into_int_value();
        let to = self.place_of_packed_b(result, plan, ir.sub(ir.i64(1), number));
        let (progress, group) = (places.progress, plan.contraction.group());
        let of_row = plan.n / plan.block.lanes / of_chunk;
        let pieces = ir.mul(ir.udiv(rows.depth, ir.i64(group)), ir.i64(of_row));
        ir.store(progress.from, rows.from.first.into());
        ir.store(progress.to, to.address.into());
        ir.store(progress.column, ir.i64(0).into());
        ir.store(progress.left, ir.select_int(is_packed, pieces, ir.i64(0)).into());
        let of_block = (plan.chunks() / of_row).max(1) * group;
        Some(Beside { from: rows.from, to, is_packed, progress, of_chunk, of_block })
    }

    /// Copies what a chunk of steps is to copy, and asks for what the next register block's chunk will.
    pub(super) fn pack_chunk(&self, beside: &Beside<'c>, plan: &Plan) {
        let ir = self.ir;
        let left = self.left_of(beside);
        ir.if_then(ir.icmp(IntPredicate::NE, left, ir.i64(0)), || {
            let (rows, column) = self.pack_piece(beside, plan, left);
            for vector in 0..beside.of_chunk {
                let column = ir.add(column, ir.i64(vector * plan.block.lanes));
                for line in 0..plan.contraction.group() {
                    let row = ir.i64(beside.of_block + line);
                    ir.prefetch_for_later(self.address_in(&rows, [row, column]));
                }
            }
        });
    }

    /// Copies what register blocks have left: those of a tile at the edge are fewer.
    pub(super) fn pack_rest(&self, beside: &Beside<'c>, plan: &Plan) {
        let is_some = |ir: &Ir<'c>| ir.icmp(IntPredicate::NE, self.left_of(beside), ir.i64(0));
        self.ir.while_loop(is_some(self.ir), &[], |_| {
            self.pack_piece(beside, plan, self.left_of(beside));
            (is_some(self.ir), Vec::new())
        });
    }

    /// Pieces that are missing.
    fn left_of(&self, beside: &Beside<'c>) -> IntValue<'c> {
        self.ir.load(self.ir.context.i64_type().into(), beside.progress.left).into_int_value()
    }

    /// Copies the next of so many pieces; its rows, and its first column.
    fn pack_piece(
        &self,
        beside: &Beside<'c>,
        plan: &Plan,
        left: IntValue<'c>,
    ) -> (Strided<'c>, IntValue<'c>) {
        let (ir, progress, i64) = (self.ir, beside.progress, self.ir.context.i64_type());
        let (group, lanes, width) = (plan.contraction.group(), plan.block.lanes, plan.block.width());
        let [from, to] = [progress.from, progress.to].map(|cell| {
            ir.load(ir.context.ptr_type(AddressSpace::default()).into(), cell).into_pointer_value()
        });
        let column = ir.load(i64.into(), progress.column).into_int_value();
        let (rows, panels) = (beside.from.from(from), beside.to.from(to));
        for vector in 0..beside.of_chunk {
            let place = [ir.i64(0), ir.add(column, ir.i64(vector * lanes))];
            let joined = self.joined_rows(&rows, plan, place);
            self.buffers.store_as(&panels, plan.place_of_b(ir, place), joined.into());
        }
        let next = ir.add(column, ir.i64(beside.of_chunk * lanes));
        let is_last = ir.icmp(IntPredicate::EQ, next, ir.i64(plan.n));
        let below = self.address_in(&rows, [ir.i64(group), ir.i64(0)]);
        let panels_below = self.buffers.further(&panels, ir.i64(width * group)).address;
        ir.store(progress.from, ir.select(is_last, below.into(), from.into()));
        ir.store(progress.to, ir.select(is_last, panels_below.into(), to.into()));
        ir.store(progress.column, ir.select_int(is_last, ir.i64(0), next).into());
        ir.store(progress.left, ir.sub(left, ir.i64(1)).into());
        (rows, column)
    }

    /// What these turns of a loop read of `b`; `None` where nobody can know before them.
    pub(super) fn rows_of_b(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        turns: Turns<'c>,
    ) -> Option<Rows<'c>> {
        let ir = self.ir;
        let [a, b] = [0, 1].map(|factor| product.operands[factor]);
        let Turns { counter, body, first, last } = turns;
        if ![a, b].into_iter().all(|factor| self.is_known_ahead(factor, counter, body)) {
            return None;
        }
        [a, b].into_iter().for_each(|factor| self.emit_constants_of(factor));
        self.bind_scalars(&[counter], &[last.into()]);
        let (a, end) = (self.factor(a, ir.i64(0), plan), self.checked_factor(b, plan)?);
        let of_last = self.depth_of(&a, &Factor::Strided(end.clone()), plan);
        self.bind_scalars(&[counter], &[first.into()]);
        let begin = self.checked_factor(b, plan)?;
        let (before, k) = (ir.sub(last, first), ir.i64(plan.k));
        let ends = |strided: &Strided<'c>| strided.valid.expect("checked");
        let [[rows, columns], [last_rows, last_columns]] = [ends(&begin), ends(&end)];
        let memory = self.memory_of(&begin)?;
        let row = if memory.contiguous == 1 { memory.stride } else { ir.i64(1) };
        let bytes = ir.mul(ir.mul(ir.mul(before, k), row), ir.i64(memory.element_bytes));
        let (begin_at, end_at) = (ir.address(memory.address), ir.address(self.memory_of(&end)?.address));
        let is_one = ir.icmp(IntPredicate::EQ, before, ir.i64(0));
        let conditions = [
            ir.or(is_one, ir.icmp(IntPredicate::EQ, rows, k)),
            ir.icmp(IntPredicate::UGE, last_rows, of_last),
            ir.icmp(IntPredicate::EQ, columns, ir.i64(plan.n)),
            ir.icmp(IntPredicate::EQ, last_columns, ir.i64(plan.n)),
            ir.icmp(IntPredicate::EQ, ir.sub(end_at, begin_at), bytes),
        ];
        Some(Rows {
            from: begin,
            address: begin_at,
            stride: memory.stride,
            depth: ir.add(ir.mul(before, k), of_last),
            is_whole: ir.all(conditions),
        })
    }
}

impl<'c> Rows<'c> {
    /// What tells a matrix from others that the same load reads.
    fn matrix(&self) -> [IntValue<'c>; 3] {
        [self.address, self.stride, self.depth]
    }
}
