//! What the next multiplication reads of `b` is packed beside the present one.
//!
//! Packing waits for memory, and register blocks for nothing. So while they multiply they also copy what of `b` comes next,
//! that of the loop's next turns or of the next block's first ones, a few vectors in every chunk of steps, which the register
//! block before has asked for. There are two places for what is packed, which take turns.
//!
//! What comes next is a guess that is right where a load's index is the loop's counter and the block's index. So an entry
//! remembers which matrix it was, and the next multiplication looks whether it is its own. Nothing is read that the tensor
//! doesn't have, whatever the guess, and a tensor that the kernel writes isn't read before its time.
//!
//! What either place has is there as well for a later block that multiplies by the same: those below each other in the grid do
//! where a loop has no more than two multiplications, so that blocks of tiles, for which packing takes long, go down.

use super::super::buffer::Buffer;
use super::super::fuse::Fusion;
use super::super::region::Emitter;
use super::ahead::Next;
use super::factor::{Factor, Strided, behind_transposition, streamed_load};
use super::plan::{Plan, Products};
use super::right::InPlace;
use super::{Needed, cell};
use crate::emit::Ir;
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, RegionId, ValueId};

/// Vectors that a chunk of steps copies at most. More come at the rate of memory alone, and register blocks that wait for them
/// take longer than packing them would.
const MOST_OF_CHUNK: i64 = 4;

/// The same beside tiles, which are multiplied while vectors rest.
const MOST_BESIDE_TILES: i64 = 8;

/// Vectors that a chunk of steps copies so that all register blocks together copy all: neighbours in a row. `None` where these
/// would be too many.
fn vectors_of_chunk(plan: &Plan) -> Option<i64> {
    let (chunks, of_row) = (plan.chunks() * plan.blocks(), plan.n / plan.block.lanes);
    let least = (plan.depth() / plan.contraction.group() * of_row + chunks - 1) / chunks;
    let most = if plan.contraction.tiles().is_some() { MOST_BESIDE_TILES } else { MOST_OF_CHUNK };
    (least..=of_row.min(most)).find(|vectors| of_row % vectors == 0)
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

/// Whether what is packed of a loop's `b` stays for the next blocks: what is packed beside, and of tiles, which are multiplied
/// faster than they are packed, any part of a tensor that nothing writes.
pub(super) fn is_kept(instance: &Instance, fusion: &Fusion<'_>, product: &OpData, plan: &Plan) -> bool {
    let (tile, _) = behind_transposition(fusion, product.operands[1]);
    let view = streamed_load(fusion, tile).map(|data| data.operands[0]);
    let is_written = |view| instance.ty(view).as_partition().is_none_or(|partition| partition.tensor.mutable);
    plan.beside || (plan.contraction.tiles().is_some() && view.is_some_and(|view| !is_written(view)))
}

/// What an entry remembers of a product's two places for `b`.
#[derive(Clone)]
pub(super) struct Places<'c> {
    /// Which of them is read at present.
    present: PointerValue<'c>,
    /// The matrices that the present one and the other one have.
    matrices: [Remembered<'c>; 2],
    progress: Progress<'c>,
}

impl<'c> Places<'c> {
    fn new(ir: &Ir<'c>) -> Places<'c> {
        let number = || cell(ir, ir.context.i64_type(), "beside");
        let address = || cell(ir, ir.context.ptr_type(AddressSpace::default()), "beside");
        let matrix = || [number(), number(), number()];
        let progress = Progress { from: address(), to: address(), column: number(), left: number() };
        Places { present: number(), matrices: [matrix(), matrix()], progress }
    }
}

/// A matrix that is packed: its address, the distance of its lines and how deep it is; zeros for none.
type Remembered<'c> = [PointerValue<'c>; 3];

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
        self.keep_b().map(|product| (product, Places::new(ir))).collect()
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
    /// Whether it is packed by then: now, or before.
    pub(super) is_near: IntValue<'c>,
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
    pub(super) fn packed_b(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        (turns, needed): (Turns<'c>, Needed<'c>),
    ) -> PackedB<'c> {
        let ir = self.ir;
        let result = product.results[0];
        let Some(places) = self.memories.places.get(&result).cloned() else {
            let in_place = self.b_of_turns_in_place(product, plan, turns);
            return self.only_packed_b(result, plan, in_place);
        };
        let [present, other] = places.matrices.map(|matrix| self.remembered(matrix));
        let rows = self.rows_of_b(product, plan, turns);
        let none = [ir.i64(0); 3];
        let (now, is_whole) = rows.map_or((none, ir.bool(false)), |rows| (rows.matrix(), rows.is_whole));
        let [in_present, in_other] =
            [present, other].map(|matrix| ir.and(is_whole, self.is_same(now, matrix)));
        let is_there = ir.or(in_present, in_other);
        // What nothing packs beside goes to the place that was read less recently.
        let changes =
            if plan.beside { in_other } else { ir.select_int(in_present, ir.bool(false), ir.bool(true)) };
        let all_columns = ir.icmp(IntPredicate::EQ, needed.columns, ir.i64(plan.n));
        let packed = self.either(ir.or(is_there, ir.and(is_whole, all_columns)), now, none);
        self.remember(places.matrices[0], packed);
        self.remember(places.matrices[1], self.either(changes, present, other));
        let number = ir.load(ir.context.i64_type().into(), places.present).into_int_value();
        let number = ir.select_int(changes, ir.sub(ir.i64(1), number), number);
        ir.store(places.present, number.into());
        let buffer = self.place_of_packed_b(result, plan, number);
        PackedB { buffer, is_there: Some(is_there), in_place: None }
    }

    fn remembered(&self, matrix: Remembered<'c>) -> [IntValue<'c>; 3] {
        matrix.map(|cell| self.ir.load(self.ir.context.i64_type().into(), cell).into_int_value())
    }

    fn remember(&self, matrix: Remembered<'c>, numbers: [IntValue<'c>; 3]) {
        matrix.into_iter().zip(numbers).for_each(|(cell, number)| self.ir.store(cell, number.into()));
    }

    fn is_same(&self, a: [IntValue<'c>; 3], b: [IntValue<'c>; 3]) -> IntValue<'c> {
        let ir = self.ir;
        ir.all(a.into_iter().zip(b).map(|(a, b)| ir.icmp(IntPredicate::EQ, a, b)))
    }

    /// The first numbers where a condition holds, and else the others.
    fn either(
        &self,
        condition: IntValue<'c>,
        a: [IntValue<'c>; 3],
        b: [IntValue<'c>; 3],
    ) -> [IntValue<'c>; 3] {
        std::array::from_fn(|i| self.ir.select_int(condition, a[i], b[i]))
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
        if !plan.beside {
            return None;
        }
        let places = self.memories.places.get(&result)?.clone();
        let turns = ir.lesser(ir.sub(end, next.turn), ir.i64(plan.turns));
        let last = ir.sub(ir.add(next.turn, turns), ir.i64(1));
        let turns = Turns { first: next.turn, last, ..present };
        let comes = ir.or(next.is_here, self.differs(&next.scalars));
        let rows = self.as_next(present.counter, next, |emitter| emitter.rows_of_b(product, plan, turns))?;
        let matrix = rows.matrix();
        let [present, other] = places.matrices.map(|matrix| self.remembered(matrix));
        let is_there = ir.or(self.is_same(matrix, present), self.is_same(matrix, other));
        let is_packed = ir.and(ir.select_int(is_there, ir.bool(false), comes), rows.is_whole);
        self.remember(places.matrices[1], self.either(is_packed, matrix, other));
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
        let (is_near, of_block) = (ir.or(is_there, is_packed), (plan.chunks() / of_row).max(1) * group);
        Some(Beside { from: rows.from, to, is_near, progress, of_chunk, of_block })
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
