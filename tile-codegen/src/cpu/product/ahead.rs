//! Prefetching the factors of later iterations to the second cache while the present ones are multiplied.
//!
//! Packing reads short pieces of rows that are far from each other, which the processor's own prefetchers don't foresee;
//! the latency of memory then costs a fifth of a product's time. So every step of a register block along K prefetches one
//! line of what is packed next: the tiles of the loop's next iterations, or of the first iterations of the grid's next
//! block.
//!
//! The addresses are guesses, which are right if a load's index is the loop's counter and the block's index. A wrong guess
//! costs a useless prefetch and nothing else.

use super::super::LINE_BYTES;
use super::super::region::Emitter;
use super::super::round_up::{div_ceil, whole_pieces};
use super::Accumulating;
use super::factor::Factor;
use super::left::TensorA;
use super::places::NextB;
use super::plan::{OrderOfA, Plan};
use super::rows::{ProductLoop, Turns};
use crate::cpu::memory::scratch::element_bytes;
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

const LINE: i64 = LINE_BYTES as i64;

/// Steps of a register block along K in which it asks once: so few that a processor remembers how often such a loop turns,
/// and guesses its end right.
pub(super) const CHUNK: i64 = 16;

/// A matrix that is packed soon, in each of several turns.
pub(super) struct FactorAhead<'c> {
    /// The first byte, in the first turn.
    first: PointerValue<'c>,
    /// Bytes from a turn's matrix to the next turn's.
    turn: IntValue<'c>,
    /// Bytes from a line of elements to the next.
    stride: IntValue<'c>,
    /// Lines of elements of a turn.
    lines: i64,
    /// Cache lines that one of them takes.
    pieces: i64,
    /// Whether there is no need to ask for it.
    is_near: Option<IntValue<'c>>,
}

/// How near a factor of the multiplication that comes next is already.
#[derive(Clone, Copy, Default)]
pub(super) struct Near<'c> {
    /// Whether there is no need to ask for it.
    pub(super) is_near: Option<IntValue<'c>>,
    /// Where it is packed, if it is.
    packed: Option<Packed<'c>>,
}

/// A factor that is packed, perhaps.
#[derive(Clone, Copy)]
struct Packed<'c> {
    is_there: IntValue<'c>,
    first: PointerValue<'c>,
    /// Bytes from a row to the next; `None` where one line comes behind the other.
    row: Option<i64>,
}

/// When what comes next is asked for.
pub(super) struct Next<'c> {
    /// The turn that is packed next.
    pub(super) turn: IntValue<'c>,
    /// Whether that is one of this block's.
    pub(super) is_here: IntValue<'c>,
    /// The scalars that differ by then, with their values: the block's index, of the next block.
    pub(super) scalars: Vec<(ValueId, Value<'c>)>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The factors of a product as its loop's next turns read them, in their tensors or where they are packed: nothing of
    /// those that need no asking, as they are packed by then or come by themselves.
    pub(super) fn ahead(
        &mut self,
        data: &'a OpData,
        plan: &Plan,
        looped: ProductLoop<'c>,
        next: &Next<'c>,
        near: [Near<'c>; 2],
    ) -> Vec<FactorAhead<'c>> {
        let ir = self.ir;
        if !data.operands[..2].iter().all(|&factor| self.is_known_ahead(factor, looped)) {
            return Vec::new();
        }
        let at = |emitter: &mut Self, turn: IntValue<'c>| {
            emitter.bind_scalars(&[looped.counter], &[turn.into()]);
            [0, 1].map(|i| match emitter.factor(data.operands[i], ir.i64(0), plan) {
                Factor::Strided(strided) => emitter.memory_of(&strided),
                Factor::Computed(_) => None,
            })
        };
        let (first, second) = self.as_next(looped.counter, next, |emitter| {
            (at(emitter, next.turn), at(emitter, ir.add(next.turn, ir.i64(1))))
        });
        let extents = [[plan.m, plan.k], [plan.k, plan.n]];
        let both = first.into_iter().zip(second).zip(extents.into_iter().zip(near));
        let ahead = both.filter_map(|((first, second), (extents, near))| {
            let (first, second) = (first?, second?);
            let bytes = extents[first.contiguous] * first.element_bytes;
            let (lines, pieces) = (extents[1 - first.contiguous], div_ceil(bytes, LINE));
            let turn = ir.sub(ir.address(second.address), ir.address(first.address));
            let stride = ir.mul(first.stride, ir.i64(first.element_bytes));
            let in_tensor =
                FactorAhead { first: first.address, turn, stride, lines, pieces, is_near: near.is_near };
            Some(match near.packed {
                Some(packed) => in_tensor.unless_packed(ir, packed),
                None => in_tensor,
            })
        });
        ahead.collect()
    }

    /// How near the factors of a product's next multiplication are: what is kept of `a` if it isn't read in its tensor, and
    /// `b`, with whether it is packed beside the present one.
    pub(super) fn nearest(
        &self,
        around: &Accumulating<'_, 'a, 'c>,
        present: Turns<'c>,
        next: &Next<'c>,
        in_tensor: Option<&TensorA<'c>>,
        next_b: Option<&NextB<'c>>,
        is_packed_beside: Option<IntValue<'c>>,
    ) -> [Near<'c>; 2] {
        let (ir, product, plan) = (self.ir, around.product, around.plan);
        let number = present.from(ir, plan, next.turn).number(ir, plan);
        let a = around.keeping.map(|keeping| {
            let is_there = keeping.is_there_next(ir, plan, next, number);
            let packed = self.packed_a(product, plan, Some(keeping), number, None);
            match packed.filter(|_| self.order_of_a(product.operands[0], plan) == OrderOfA::ByRows) {
                Some(packed) => {
                    let is_there = in_tensor
                        .map_or(is_there, |tensor| ir.select_int(tensor.is_read, ir.bool(false), is_there));
                    let row = plan.strides_of_a(OrderOfA::ByRows)[0] * element_bytes(plan.packed) as i64;
                    let packed = Packed { is_there, first: packed.buffer.address, row: Some(row) };
                    Near { is_near: None, packed: Some(packed) }
                }
                None => Near { is_near: Some(is_there), packed: None },
            }
        });
        let b = next_b.map(|NextB { found, .. }| {
            let place = self.packed_at(product.results[0], plan, found.number);
            let packed = Packed { is_there: found.is_there, first: place.address, row: None };
            Near { is_near: is_packed_beside, packed: Some(packed) }
        });
        [a.unwrap_or_default(), b.unwrap_or_default()]
    }

    /// What there is to say where scalars are those of the multiplication that comes next, but for the loop's counter, which
    /// is bound meanwhile.
    pub(super) fn as_next<R>(
        &mut self,
        counter: ValueId,
        next: &Next<'c>,
        say: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let changed = next.scalars.iter().map(|&(scalar, _)| scalar).chain([counter]);
        let known = changed.filter_map(|scalar| Some((scalar, self.scalar_if_known(scalar)?)));
        let known: Vec<(ValueId, Value<'c>)> = known.collect();
        next.scalars.iter().for_each(|&(scalar, value)| self.bind_scalars(&[scalar], &[value]));
        let said = say(self);
        known.into_iter().for_each(|(scalar, value)| self.bind_scalars(&[scalar], &[value]));
        said
    }

    /// Whether what a factor's loads are given is known outside of a loop's body, but for its counter.
    pub(super) fn is_known_ahead(&self, factor: ValueId, looped: ProductLoop<'c>) -> bool {
        self.fusion.streams(&[factor]).into_iter().all(|load| {
            let mut given = load.operands.iter().copied();
            given.all(|value| {
                let is_inside = self.fusion.home(value) == Some(looped.body);
                value == looped.counter || !is_inside || self.fusion.is_constant(value)
            })
        })
    }
}

impl<'c> FactorAhead<'c> {
    /// The packed matrix where it is there, as many lines of it.
    fn unless_packed(self, ir: &Ir<'c>, packed: Packed<'c>) -> FactorAhead<'c> {
        let piece = self.pieces * LINE;
        let (turn, stride) = match packed.row {
            Some(row) => (piece, row),
            None => (self.lines * piece, piece),
        };
        let either = |there: i64, elsewhere| ir.select_int(packed.is_there, ir.i64(there), elsewhere);
        FactorAhead {
            first: ir.select(packed.is_there, packed.first.into(), self.first.into()).into_pointer_value(),
            turn: either(turn, self.turn),
            stride: either(stride, self.stride),
            ..self
        }
    }

    /// What a register block asks for: some lines of elements of one turn, so many that all blocks together ask for all.
    pub(super) fn share(&self, ir: &Ir<'c>, plan: &Plan, block: IntValue<'c>) -> Share<'c> {
        let least = div_ceil(plan.turns * self.lines, plan.blocks());
        let lines = (least..self.lines).find(|lines| self.lines % lines == 0).unwrap_or(self.lines);
        let before = ir.mul(block, ir.i64(lines));
        let (turn, line) = (ir.udiv(before, ir.i64(self.lines)), ir.urem(before, ir.i64(self.lines)));
        let first = ir.add(ir.mul(turn, self.turn), ir.mul(line, self.stride));
        let first = ir.bytes_further(self.first, first);
        let most = lines * self.pieces;
        let of_chunk = of_chunk(most, plan, self.pieces);
        let count = ir.i64(most);
        let count = self.is_near.map_or(count, |is_near| ir.select_int(is_near, ir.i64(0), count));
        Share { first, stride: self.stride, pieces: self.pieces, of_chunk, count }
    }
}

/// The part of a matrix that a register block asks for.
pub(super) struct Share<'c> {
    first: PointerValue<'c>,
    stride: IntValue<'c>,
    pieces: i64,
    /// Cache lines that a chunk asks for.
    of_chunk: i64,
    /// Its cache lines: none of what needs no asking.
    count: IntValue<'c>,
}

/// How many of `all` things, a register block's, a chunk of its steps has to do: neighbours of a line of so many, or lines.
fn of_chunk(all: i64, plan: &Plan, of_line: i64) -> i64 {
    let least = div_ceil(all, plan.chunks());
    let lines = || whole_pieces(least, of_line);
    (least..of_line).find(|count| of_line % count == 0).unwrap_or_else(lines)
}

impl<'c> Share<'c> {
    /// Asks for the lines of a chunk of steps along K, as long as there are some.
    pub(super) fn ask(&self, ir: &Ir<'c>, chunk: IntValue<'c>) {
        let first = ir.mul(chunk, ir.i64(self.of_chunk));
        ir.if_then(ir.icmp(IntPredicate::ULT, first, self.count), || {
            let (line, piece) = (ir.udiv(first, ir.i64(self.pieces)), ir.urem(first, ir.i64(self.pieces)));
            let first = ir.add(ir.mul(line, self.stride), ir.mul(piece, ir.i64(LINE)));
            let mut line = ir.bytes_further(self.first, first);
            for _ in 0..(self.of_chunk / self.pieces).max(1) {
                for piece in 0..self.of_chunk.min(self.pieces) {
                    ir.prefetch_for_later(ir.bytes_further(line, ir.i64(piece * LINE)));
                }
                line = ir.bytes_further(line, self.stride);
            }
        });
    }
}
