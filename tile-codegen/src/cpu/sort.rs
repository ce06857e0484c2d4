//! Op [`tile_ir::Op::Sort`]: the lines of an axis in order.
//!
//! An element has a **key**, an integer of 64 bits: its order above, and below it its place on the line. So no two keys are
//! equal, equal elements stay in their order, and a sorted key says whose it is. A line's keys are sorted by a bitonic network
//! (Batcher 1968, "Sorting networks and their applications"), n·log²n comparisons without a branch, as many at once as a
//! vector has lanes. Every merge begins by comparing the one half with the other one backwards, so that all comparisons put
//! the lesser key first. Behind the end of a line that isn't a power of two there are keys beyond all.
//!
//! Elements of 64 bits leave no room for a place: each is compared with all others of its line, and counted is how many
//! stand before it.

use super::buffer::Buffer;
use super::elements::{count, hint_for};
use super::region::{Emitter, extents};
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, Instance, Op};

/// Keys that are compared at once.
const LANES: u32 = 8;

/// Bits of a key below its order.
const PLACE_BITS: u32 = 31;

/// The widest elements that have keys, in bits.
const MOST_BITS: u32 = 32;

/// Keys of a line, and those beyond all.
fn padded(extent: i64) -> i64 {
    extent.max(i64::from(LANES)).cast_unsigned().next_power_of_two().cast_signed()
}

/// Bytes of the keys of a line that an op sorts; none if it doesn't, or not by keys.
pub(super) fn key_bytes(instance: &Instance, data: &OpData) -> u64 {
    let Op::Sort { axis, .. } = &data.op else { return 0 };
    let ty = instance.ty(data.operands[0]).as_tile().expect("verified: a tile is sorted");
    let dtype = ty.elem.known().expect("an instance has no dtype parameters");
    let keys = padded(extents(&ty.shape)[*axis]).cast_unsigned();
    if dtype.bits() > MOST_BITS { 0 } else { keys * DType::I64.bytes() as u64 }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Op [`tile_ir::Op::Sort`].
    pub(super) fn sort(&mut self, data: &'a OpData, axis: usize, descending: bool) {
        match self.buffers.keys(data.results[0]) {
            Some(keys) => self.sort_by_keys(data, axis, descending, &keys),
            None => self.sort_by_ranks(data, axis, descending),
        }
    }

    fn sort_by_keys(&mut self, data: &'a OpData, axis: usize, descending: bool, keys: &Buffer<'c>) {
        let tile = data.operands[0];
        let (shape, kept) = (self.shape(tile), self.shape(data.results[0]));
        let mut lines = shape.clone();
        lines[axis] = 1;
        self.each_row(&lines, &mut |emitter, line| {
            let (ir, extent) = (emitter.ir, shape[axis]);
            count(ir, ir.i64(extent), extent, |place| {
                let element = emitter.element(tile, &at(line, axis, place));
                let order = ir.resize(ir.order_of(emitter.dtype(tile), descending, element), 64, true);
                let key = ir.or(ir.shl(order, ir.i64(PLACE_BITS.into())), place);
                emitter.buffers.store(keys, place, key.into());
            });
            count(ir, ir.i64(padded(extent) - extent), extent, |beyond| {
                let place = ir.add(ir.i64(extent), beyond);
                emitter.buffers.store(keys, place, ir.i64(i64::MAX).into());
            });
            emitter.sort_keys(keys, padded(extent));
            count(ir, ir.i64(kept[axis]), kept[axis], |rank| {
                let key = emitter.buffers.load(keys, rank).into_int_value();
                let place = ir.and(key, ir.i64((1 << PLACE_BITS) - 1));
                let element = emitter.element(tile, &at(line, axis, place));
                emitter.keep_sorted(data, &at(line, axis, rank), (element, place));
            });
        });
    }

    /// Puts keys in order; there are a power of two of them, and a vector of them at least.
    fn sort_keys(&mut self, keys: &Buffer<'c>, extent: i64) {
        let (ir, end, lanes) = (self.ir, self.ir.i64(extent), i64::from(LANES));
        let step = ir.i64(lanes);
        self.each_key_vector(keys, end, &[1, 3, 1, 7, 2, 1]);
        let half = |x| ir.lshr(x, ir.i64(1));
        let goes_on = |merged| ir.icmp(IntPredicate::ULE, merged, end);
        let first = ir.i64(2 * lanes);
        ir.while_loop(goes_on(first), &[first.into()], |merged| {
            let merged = merged[0].into_int_value();
            each(ir, end, merged, |begin| {
                let last = ir.sub(ir.add(begin, merged), step);
                each(ir, half(merged), step, |i| {
                    self.put_in_order(keys, [ir.add(begin, i), ir.sub(last, i)], true)
                });
            });
            let is_apart = |distance| ir.icmp(IntPredicate::UGE, distance, step);
            let distance = half(half(merged));
            ir.while_loop(is_apart(distance), &[distance.into()], |distance| {
                let distance = distance[0].into_int_value();
                each(ir, end, ir.add(distance, distance), |begin| {
                    each(ir, distance, step, |i| {
                        let low = ir.add(begin, i);
                        self.put_in_order(keys, [low, ir.add(low, distance)], false);
                    });
                });
                (is_apart(half(distance)), vec![half(distance).into()])
            });
            self.each_key_vector(keys, end, &[4, 2, 1]);
            let next = ir.add(merged, merged);
            (goes_on(next), vec![next.into()])
        });
    }

    /// Compares two vectors of keys lane by lane, the second one backwards if so, and leaves the lesser keys in the first.
    fn put_in_order(&self, keys: &Buffer<'c>, [low, high]: [IntValue<'c>; 2], backwards: bool) {
        let ir = self.ir;
        let turned = |vector| if backwards { ir.lanes_of(vector, |lane| LANES - 1 - lane) } else { vector };
        let [a, b] = [low, high].map(|first| self.buffers.load_lanes(keys, first, None, LANES));
        let [lesser, greater] = ir.in_order(a, turned(b));
        self.buffers.store_lanes(keys, low, None, lesser);
        self.buffers.store_lanes(keys, high, None, turned(greater));
    }

    /// In each vector of keys, compares lanes with those whose numbers differ by these bits, one after the other.
    fn each_key_vector(&self, keys: &Buffer<'c>, end: IntValue<'c>, bits: &[u32]) {
        let ir = self.ir;
        each(ir, end, ir.i64(LANES.into()), |first| {
            let vector = self.buffers.load_lanes(keys, first, None, LANES);
            let sorted = bits.iter().fold(vector, |vector, bits| {
                let [lesser, greater] = ir.in_order(vector, ir.lanes_of(vector, |lane| lane ^ bits));
                let own: Vec<u32> =
                    (0..LANES).map(|lane| if lane < lane ^ bits { lane } else { lane + LANES }).collect();
                ir.lanes_at(lesser, greater, &own)
            });
            self.buffers.store_lanes(keys, first, None, sorted);
        });
    }

    fn sort_by_ranks(&mut self, data: &'a OpData, axis: usize, descending: bool) {
        let (tile, dtype) = (data.operands[0], self.dtype(data.operands[0]));
        let (shape, kept) = (self.shape(tile), self.shape(data.results[0]));
        self.nest(&shape, &mut |emitter, index| {
            let ir = emitter.ir;
            let (own, place, extent) = (emitter.element(tile, index), index[axis], shape[axis]);
            let bounds = (ir.i64(0), ir.i64(extent), ir.i64(1));
            let rank = ir.hinted_loop(bounds, hint_for(extent), &[ir.i64(0).into()], |other, rank| {
                let element = emitter.element(tile, &at(index, axis, other));
                let earlier = ir.icmp(IntPredicate::ULT, other, place);
                let before = ir.stands_before(dtype, descending, (element, own), earlier);
                vec![ir.add(rank[0].into_int_value(), ir.resize(before, 64, false)).into()]
            });
            let rank = rank[0].into_int_value();
            ir.if_then(ir.icmp(IntPredicate::ULT, rank, ir.i64(kept[axis])), || {
                emitter.keep_sorted(data, &at(index, axis, rank), (own, place));
            });
        });
    }

    /// Stores an element and the place where it was.
    fn keep_sorted(
        &mut self,
        data: &OpData,
        index: &[IntValue<'c>],
        (element, place): (Value<'c>, IntValue<'c>),
    ) {
        let (values, places) = (self.stored(data.results[0]), self.stored(data.results[1]));
        let position = self.position(index, &self.shape(data.results[0]));
        self.buffers.store(&values, position, element);
        self.buffers.store(&places, position, self.ir.resize(place, 32, false).into());
    }
}

/// An index whose place along an axis is another one.
fn at<'c>(index: &[IntValue<'c>], axis: usize, place: IntValue<'c>) -> Vec<IntValue<'c>> {
    let mut index = index.to_vec();
    index[axis] = place;
    index
}

/// `for i in (0..end).step_by(step)`, of loops that stay loops.
fn each<'c>(ir: &Ir<'c>, end: IntValue<'c>, step: IntValue<'c>, body: impl FnOnce(IntValue<'c>)) {
    ir.hinted_loop((ir.i64(0), end, step), LoopHint::Rolled, &[], |i, _| {
        body(i);
        Vec::new()
    });
}

impl<'c> Ir<'c> {
    /// The lanes of a vector of keys that a function names.
    fn lanes_of(&self, vector: VectorValue<'c>, lane: impl Fn(u32) -> u32) -> VectorValue<'c> {
        let lanes: Vec<u32> = (0..LANES).map(lane).collect();
        self.lanes_at(vector, vector, &lanes)
    }

    /// The lesser and the greater keys of two vectors.
    fn in_order(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> [VectorValue<'c>; 2] {
        let positioned = "the builder is positioned";
        let is_less = self.builder.build_int_compare(IntPredicate::SLT, a, b, "").expect(positioned);
        let choose =
            |x, y| self.builder.build_select(is_less, x, y, "").expect(positioned).into_vector_value();
        [choose(a, b), choose(b, a)]
    }
}
