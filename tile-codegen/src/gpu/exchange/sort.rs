//! Op [`tile_ir::Op::Sort`]: the lines of an axis in order.
//!
//! The tile goes to shared memory, where each thread reads its share of a line and makes keys of it
//! ([`tile_ir::gpu::Sorting`]). [`super::network`] puts these in order; what lies beyond a line's end is beyond all. The
//! places that sorted keys name go to shared memory, row-major, and every thread takes those of its elements, and the
//! elements from where they were: so they keep all their bits, which a key doesn't have. Where there are more lines than
//! threads for them, lines are sorted in turns. Warps without a line do nothing, and threads without one in another warp do
//! what the others do, and write nothing.

use super::network::{Network, Reach};
use crate::emit::{Ir, LoopHint, Value};
use crate::gpu::coordinates::{both, product, quotient, remainder};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::cell::Cell;
use tile_ir::gpu::{Buffer, Sorting};
use tile_ir::kernel::OpData;
use tile_ir::{DType, OpId, ValueId};
use tile_layout::shape::Lines;

/// Places that one instruction writes at most.
const MOST_PLACES: u64 = 4;

/// A line that the running thread's keys are of, and its part of it.
struct Part<'c> {
    /// The line's number; of a thread without one the last line's.
    line: IntValue<'c>,
    /// Whether the thread has a line; `None` where all have.
    exists: Option<IntValue<'c>>,
    /// The thread's number among those of the line.
    own: IntValue<'c>,
}

impl<'c> Emitter<'_, 'c> {
    /// Op [`tile_ir::Op::Sort`].
    pub(in crate::gpu) fn sort(&mut self, op: OpId, data: &OpData, axis: usize, descending: bool) {
        let (tile, sorting) = (data.operands[0], self.scheduled.sorting(data));
        let buffers = self.share_all(op, &[tile]);
        let [source, places, exchanged @ ..] = buffers else { unreachable!("a sort asks for two buffers") };
        let lines = self.lines(tile, axis);
        let kept = self.lines(data.results[0], axis);
        let has_turns = sorting.lines > sorting.at_once;
        let turn = |first: IntValue<'c>| {
            let part = self.part_of_line(&sorting, first);
            let keys = self.keys(*source, &sorting, lines, &part, descending);
            let network = Network {
                emitter: self,
                sorting: &sorting,
                exchanged: exchanged.first().copied(),
                is_read: Cell::new(has_turns),
                own: part.own,
            };
            let reach = if sorting.keeps_few() { Reach::Least } else { Reach::Whole };
            self.write_places(*places, &sorting, kept, &part, &network.sorted(keys, reach));
        };
        let turn = |first: IntValue<'c>| self.where_it_holds(self.has_lines(&sorting, first), || turn(first));
        let bounds = [0, sorting.lines, sorting.at_once].map(|number| self.i32(number));
        if has_turns {
            self.ir.hinted_loop(bounds.into(), LoopHint::Rolled, &[], |first, _| {
                turn(first);
                Vec::new()
            });
        } else {
            turn(self.i32(0));
        }
        self.sync();
        let positions = self.take(*places, data.results[1]);
        self.set_tile(data.results[1], positions);
        let values = self.elements_at(*source, tile, axis, *places, data.results[0]);
        self.set_tile(data.results[0], values);
    }

    /// Whether the running thread's warp has a line, of those from `first` on; `None` where all warps have, or where a line's
    /// threads wait for those of other warps.
    fn has_lines(&self, sorting: &Sorting, first: IntValue<'c>) -> Option<IntValue<'c>> {
        let (ir, of_warp) = (self.ir, sorting.lanes() / sorting.threads);
        if of_warp == 0 || sorting.lines.is_multiple_of(sorting.at_once) {
            return None;
        }
        let warp = quotient(ir, self.running_thread(), sorting.lanes());
        let line = ir.add(first, product(ir, warp, of_warp));
        Some(ir.icmp(IntPredicate::ULT, line, self.i32(sorting.lines)))
    }

    /// The running thread's part, where lines from `first` on are sorted.
    fn part_of_line(&self, sorting: &Sorting, first: IntValue<'c>) -> Part<'c> {
        let (ir, thread) = (self.ir, self.running_thread());
        let line = ir.add(first, quotient(ir, thread, sorting.threads));
        let own = remainder(ir, thread, sorting.threads);
        if sorting.lines.is_multiple_of(sorting.at_once) {
            return Part { line, exists: None, own };
        }
        let exists = ir.icmp(IntPredicate::ULT, line, self.i32(sorting.lines));
        Part { line: ir.select_int(exists, line, self.i32(sorting.lines - 1)), exists: Some(exists), own }
    }

    /// The keys of the running thread's elements, which are any of the line: neighbours in neighbouring threads.
    fn keys(
        &self,
        source: Buffer,
        sorting: &Sorting,
        lines: Lines,
        part: &Part<'c>,
        descending: bool,
    ) -> Vec<IntValue<'c>> {
        let (ir, start) = (self.ir, self.line_start(lines, part.line));
        let beyond = beyond_all(ir, sorting.key_bits);
        let key = |i: u64| {
            let first = i * sorting.threads;
            if first >= sorting.extent {
                return beyond;
            }
            let place = ir.add(part.own, self.i32(first));
            let exists = (first + sorting.threads > sorting.extent)
                .then(|| ir.icmp(IntPredicate::ULT, place, self.i32(sorting.extent)));
            let read = exists.map_or(place, |exists| ir.select_int(exists, place, self.i32(0)));
            let element = self.read_shared(source, ir.add(start, product(ir, read, lines.inner as u64)));
            let key = self.key(sorting, ir.order_of(source.dtype, descending, element), place);
            exists.map_or(key, |exists| ir.select_int(exists, key, beyond))
        };
        (0..sorting.keys).map(key).collect()
    }

    /// The key of an element of this order at a place.
    fn key(&self, sorting: &Sorting, order: IntValue<'c>, place: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let bits = |value: u64| ir.int_type(sorting.key_bits).const_int(value, false);
        let upper = match sorting.key_bits - order.get_type().get_bit_width() {
            0 => {
                ir.and(order, ir.xor(bits((1 << sorting.place_bits) - 1), order.get_type().const_all_ones()))
            }
            lower => ir.shl(ir.resize(order, sorting.key_bits, false), bits(lower.into())),
        };
        ir.or(upper, ir.resize(place, sorting.key_bits, false))
    }

    /// Writes where the running thread's sorted keys come from, as far as they are kept.
    fn write_places(
        &self,
        places: Buffer,
        sorting: &Sorting,
        kept: Lines,
        part: &Part<'c>,
        keys: &[IntValue<'c>],
    ) {
        let (ir, start) = (self.ir, self.line_start(kept, part.line));
        let few = sorting.keeps_few();
        let first = if few { self.i32(0) } else { product(ir, part.own, sorting.keys) };
        let answers = few.then(|| ir.icmp(IntPredicate::EQ, part.own, self.i32(0)));
        let answers = both(ir, part.exists, answers.filter(|_| sorting.threads > 1));
        let group = if kept.inner == 1 { 1 << sorting.kept.trailing_zeros() } else { 1 };
        let group = group.min(MOST_PLACES).min(sorting.keys);
        for (i, keys) in keys.chunks(group as usize).enumerate() {
            let behind = i as u64 * group;
            let rank = ir.add(first, self.i32(behind));
            let is_kept = match few {
                true if behind >= sorting.kept => break,
                true => None,
                false if sorting.kept == sorting.keys * sorting.threads => None,
                false => Some(ir.icmp(IntPredicate::ULT, rank, self.i32(sorting.kept))),
            };
            let address = self.shared_pointer(places, ir.add(start, product(ir, rank, kept.inner as u64)));
            let values: Vec<Value<'c>> = keys.iter().map(|&key| self.place_of(sorting, key).into()).collect();
            let write = || ir.store_group(address, DType::I32, &values);
            self.where_it_holds(both(ir, answers, is_kept), write);
        }
    }

    /// The place of a key's element on its line, an i32.
    fn place_of(&self, sorting: &Sorting, key: IntValue<'c>) -> IntValue<'c> {
        self.ir.and(self.ir.resize(key, 32, false), self.i32((1 << sorting.place_bits) - 1))
    }

    /// The elements of a tile at the places along an axis that a buffer has for a result.
    fn elements_at(
        &self,
        source: Buffer,
        tile: ValueId,
        axis: usize,
        places: Buffer,
        result: ValueId,
    ) -> Fragment<'c> {
        let (ir, mapping) = (self.ir, self.mapping(result));
        let (places, shape) = (self.take(places, result), self.extents_of(tile));
        self.map(result, |slot| {
            let mut index = mapping.index(ir, slot);
            index[axis] = places.get(slot).into_int_value();
            let element = mapping.or_zero(ir, slot, self.i32_positions().linear(&index, &shape));
            self.read_shared(source, element)
        })
    }
}

/// The greatest of all keys, which no element has where a line has less than a power of two: its place is behind them.
fn beyond_all<'c>(ir: &Ir<'c>, key_bits: u32) -> IntValue<'c> {
    let ty = ir.int_type(key_bits);
    ir.lshr(ty.const_all_ones(), ty.const_int(1, false))
}
