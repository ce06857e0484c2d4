//! Packing what the next multiplication reads of `b` during the present one.
//!
//! Packing waits for memory, and register blocks don't. So while register blocks multiply they also copy what comes next of
//! `b`, for the loop's next iterations or for the first ones of the next block: in every chunk of steps a few vectors,
//! which the register block before has prefetched. The packed matrices are written alternately to two places.
//!
//! What comes next is a guess, which is right if a load's index is the loop's counter and the block's index. So an entry
//! records which matrix it was, and the next multiplication compares that with its own. Whatever the guess, nothing outside
//! the tensor is read, and a tensor that the kernel writes isn't read too early.

use super::super::fuse::Fusion;
use super::super::region::Emitter;
use super::super::round_up::div_ceil;
use super::ahead::Next;
use super::cell;
use super::factor::{Strided, behind_transposition};
use super::places::NextB;
use super::plan::Plan;
use crate::cpu::memory::buffer::Buffer;
use crate::emit::{Ir, LoopHint};
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tile_ir::kernel::OpData;

/// Vectors that a chunk of steps copies at most. More come at the rate of memory alone, and register blocks that wait for them
/// take longer than packing them would.
const MOST_OF_CHUNK: i64 = 4;

/// The same beside tiles, which are multiplied while vectors rest.
const MOST_BESIDE_TILES: i64 = 8;

/// Vectors that a chunk of steps copies so that all register blocks together copy all: neighbours in a row. `None` where these
/// would be too many.
fn vectors_of_chunk(plan: &Plan) -> Option<i64> {
    let (chunks, of_row) = (plan.chunks() * plan.blocks(), plan.n / plan.block.lanes);
    let least = div_ceil(plan.depth() / plan.contraction.group() * of_row, chunks);
    let most = if plan.contraction.tiles().is_some() { MOST_BESIDE_TILES } else { MOST_OF_CHUNK };
    (least..=of_row.min(most)).find(|vectors| of_row % vectors == 0)
}

/// Whether a loop's `b`, if it is kept, is packed beside: whole vectors along its columns.
pub(super) fn is_packed_beside(fusion: &Fusion<'_>, product: &OpData, plan: &Plan) -> bool {
    let (_, is_transposed) = behind_transposition(fusion, product.operands[1]);
    !is_transposed && plan.n % plan.block.lanes == 0 && vectors_of_chunk(plan).is_some()
}

/// How far the next matrix has been copied, in pieces of what a chunk of steps copies. Addresses move on from piece to piece:
/// what computes them takes places of arithmetic from multiply-adds.
#[derive(Clone, Copy)]
pub(super) struct Progress<'c> {
    /// The rows of the next piece, in the tensor.
    from: PointerValue<'c>,
    /// The same in the first panel.
    to: PointerValue<'c>,
    /// The first column of the next piece.
    column: PointerValue<'c>,
    /// Pieces that are missing.
    left: PointerValue<'c>,
}

impl<'c> Progress<'c> {
    /// Makes that of an entry, at its begin.
    pub(super) fn new(ir: &Ir<'c>) -> Progress<'c> {
        let number = || cell(ir, ir.context.i64_type(), "beside");
        let address = || cell(ir, ir.context.ptr_type(AddressSpace::default()), "beside");
        Progress { from: address(), to: address(), column: number(), left: number() }
    }
}

/// What a multiplication packs of the next one's `b`.
pub(super) struct Beside<'c> {
    from: Strided<'c>,
    to: Buffer<'c>,
    /// Whether anything is.
    pub(super) is_packed: IntValue<'c>,
    progress: Progress<'c>,
    /// Vectors of a row that a chunk of steps copies.
    of_chunk: i64,
    /// Rows of `b` from what a chunk copies to what the next register block's does.
    of_block: i64,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// What is packed beside the present multiplication, which has its own `b` in this place: what the next one reads; `None`
    /// where it can't be.
    pub(super) fn beside(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        next: &Next<'c>,
        next_b: &NextB<'c>,
        place: IntValue<'c>,
    ) -> Option<Beside<'c>> {
        let (ir, result, NextB { rows, name, found }) = (self.ir, product.results[0], next_b);
        // What lies column by column is transposed as it is packed.
        if !plan.beside || rows.from.contiguous != 1 {
            return None;
        }
        let places = self.entry.memories.places.get(&result)?;
        let comes = ir.or(next.is_here, self.differs(&next.scalars));
        let is_free = ir.icmp(IntPredicate::NE, found.number, place);
        let is_missing = ir.select_int(found.is_there, ir.bool(false), ir.and(comes, is_free));
        let is_packed = ir.and(is_missing, rows.is_whole);
        let to = self.packed_at(result, plan, found.number);
        let of_chunk = vectors_of_chunk(plan)?;
        let (progress, group) = (places.progress, plan.contraction.group());
        let of_row = plan.n / plan.block.lanes / of_chunk;
        let pieces = ir.mul(ir.udiv(rows.depth, ir.i64(group)), ir.i64(of_row));
        ir.if_then(is_packed, || self.remember(places, found.number, *name));
        ir.store(progress.from, rows.from.first.into());
        ir.store(progress.to, to.address.into());
        ir.store(progress.column, ir.i64(0).into());
        ir.store(progress.left, ir.select_int(is_packed, pieces, ir.i64(0)).into());
        let of_block = (plan.chunks() / of_row).max(1) * group;
        Some(Beside { from: rows.from.clone(), to, is_packed, progress, of_chunk, of_block })
    }

    /// Copies what a chunk of steps is to copy, and asks for what the next register block's chunk will.
    pub(super) fn pack_chunk(&self, beside: &Beside<'c>, plan: &Plan) {
        let ir = self.ir;
        let left = self.left_of(beside);
        ir.if_then(ir.icmp(IntPredicate::NE, left, ir.i64(0)), || {
            let piece = self.pack_piece(beside, plan, left);
            for line in 0..plan.contraction.group() {
                let row = ir.i64(beside.of_block + line);
                let row = piece.from(self.address_in(&piece, [row, ir.i64(0)]));
                for vector in 0..beside.of_chunk {
                    let column = ir.i64(vector * plan.block.lanes);
                    ir.prefetch_for_later(self.address_in(&row, [ir.i64(0), column]));
                }
            }
        });
    }

    /// Copies what register blocks have left: those of a tile at the edge are fewer.
    pub(super) fn pack_rest(&self, beside: &Beside<'c>, plan: &Plan) {
        let is_some = |ir: &Ir<'c>| ir.icmp(IntPredicate::NE, self.left_of(beside), ir.i64(0));
        self.ir.hinted_while(is_some(self.ir), LoopHint::AsItIs, &[], |_| {
            self.pack_piece(beside, plan, self.left_of(beside));
            (is_some(self.ir), Vec::new())
        });
    }

    /// Pieces that are missing.
    fn left_of(&self, beside: &Beside<'c>) -> IntValue<'c> {
        self.ir.load(self.ir.context.i64_type().into(), beside.progress.left).into_int_value()
    }

    /// Copies the next of so many pieces, which it gives.
    fn pack_piece(&self, beside: &Beside<'c>, plan: &Plan, left: IntValue<'c>) -> Strided<'c> {
        let (ir, progress, i64) = (self.ir, beside.progress, self.ir.context.i64_type());
        let (group, lanes, width) = (plan.contraction.group(), plan.block.lanes, plan.block.width());
        let [from, to] = [progress.from, progress.to].map(|cell| {
            ir.load(ir.context.ptr_type(AddressSpace::default()).into(), cell).into_pointer_value()
        });
        let column = ir.load(i64.into(), progress.column).into_int_value();
        let (rows, panels) = (beside.from.from(from), beside.to.from(to));
        let piece = rows.from(self.address_in(&rows, [ir.i64(0), column]));
        let first = plan.place_of_b(ir, [ir.i64(0), column]);
        for vector in 0..beside.of_chunk {
            let further = ir.i64(vector * lanes);
            let place = match plan.place_in_piece(beside.of_chunk, vector) {
                Some(elements) => ir.add(first, ir.i64(elements)),
                None => plan.place_of_b(ir, [ir.i64(0), ir.add(column, further)]),
            };
            let joined = self.joined_rows(&piece, plan, [ir.i64(0), further]);
            self.buffers.store_as(&panels, place, joined.into());
        }
        let next = ir.add(column, ir.i64(beside.of_chunk * lanes));
        let is_last = ir.icmp(IntPredicate::EQ, next, ir.i64(plan.n));
        let below = self.address_in(&rows, [ir.i64(group), ir.i64(0)]);
        let panels_below = self.buffers.further(&panels, ir.i64(width * group)).address;
        ir.store(progress.from, ir.select(is_last, below.into(), from.into()));
        ir.store(progress.to, ir.select(is_last, panels_below.into(), to.into()));
        ir.store(progress.column, ir.select_int(is_last, ir.i64(0), next).into());
        ir.store(progress.left, ir.sub(left, ir.i64(1)).into());
        piece
    }
}
