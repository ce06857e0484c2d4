//! Op [`tile_ir::Op::Sort`]: sorting the lines of an axis.
//!
//! Each element gets a **key**, a 64-bit integer with the element's order in the upper bits and its place on the line in
//! the lower ones. So no two keys are equal, equal elements keep their order, and a sorted key says which element it
//! belongs to. A line's keys are sorted by a bitonic network (Batcher 1968, "Sorting networks and their applications"):
//! n·log²n comparisons without a branch, as many at once as a vector has lanes. Every merge begins by comparing one half
//! with the other one reversed, so that all comparisons put the lesser key first. A line whose length isn't a power of two
//! is padded with keys greater than all others.
//!
//! If less than half of a line is kept, only the least keys so far are kept sorted. The line is read in pieces of as many
//! keys, and a piece is skipped if none of its keys is less than the greatest that is kept, which holds for most. Any other
//! piece is sorted and merged with them: n·log²k comparisons in the worst case.
//!
//! Elements of 64 bits leave no room for a place: each one is compared with all others of its line, and its rank is the
//! number of those that come before it.

use crate::cpu::elements::{each_index, hint_for};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::region::{Emitter, extents};
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use std::ops::Range;
use tile_ir::kernel::OpData;
use tile_ir::{DType, Instance, Op};

/// Keys that are compared at once.
const LANES: u32 = 8;

/// Bits of a key below its order.
const PLACE_BITS: u32 = 31;

/// The widest elements that have keys, in bits.
const MOST_BITS: u32 = 32;

/// Keys that are sorted for so many, and those beyond all.
fn padded(extent: i64) -> i64 {
    extent.max(i64::from(LANES)).cast_unsigned().next_power_of_two().cast_signed()
}

/// How many keys are held of a line, and sorted at once, to keep so many of them; none if it is the whole line's.
fn held(extent: i64, kept: i64) -> Option<i64> {
    Some(padded(kept)).filter(|&held| held < padded(extent))
}

/// Bytes of the keys of a line that an op sorts; none if it doesn't, or not by keys.
pub(in crate::cpu) fn key_bytes(instance: &Instance, data: &OpData) -> u64 {
    let Op::Sort { axis, .. } = &data.op else { return 0 };
    let extent_of = |value| {
        let ty = instance.ty(value).as_tile().expect("verified: a tile is sorted");
        extents(&ty.shape)[*axis]
    };
    let dtype = instance.ty(data.operands[0]).elem().known().expect("an instance has no dtype parameters");
    let (extent, kept) = (extent_of(data.operands[0]), extent_of(data.results[0]));
    // Those that are held, and a piece of the line.
    let keys = held(extent, kept).map_or(padded(extent), |held| 2 * held).cast_unsigned();
    if dtype.bits() > MOST_BITS { 0 } else { keys * DType::I64.bytes() as u64 }
}

/// Elements of a line whose keys are sorted together.
#[derive(Clone, Copy)]
struct Piece<'c> {
    /// The first element's place on the line.
    first: IntValue<'c>,
    count: i64,
    /// Keys in all: behind those of the elements there are some that are greater than all others.
    padded: i64,
}

/// The order in which the second of two vectors is compared with the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    AsItIs,
    Backwards,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Op [`tile_ir::Op::Sort`].
    pub(in crate::cpu) fn sort(&mut self, data: &'a OpData, axis: usize, descending: bool) {
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
            let mut key = |emitter: &mut Self, place| {
                let element = emitter.element(tile, &at(line, axis, place));
                let order = ir.sext_or_trunc(ir.order_of(emitter.dtype(tile), descending, element), 64);
                ir.or(ir.shl(order, ir.i64(PLACE_BITS.into())), place)
            };
            match held(extent, kept[axis]) {
                Some(held) => emitter.least_keys(keys, extent, held, kept[axis], &mut key),
                None => {
                    let all = Piece { first: ir.i64(0), count: extent, padded: padded(extent) };
                    emitter.put_keys(keys, all, None, &mut key);
                    emitter.sort_keys(keys, padded(extent));
                }
            }
            each_index(ir, ir.i64(kept[axis]), kept[axis], |rank| {
                let key = emitter.buffers.load(keys, rank).into_int_value();
                let place = ir.and(key, ir.i64((1 << PLACE_BITS) - 1));
                let element = emitter.element(tile, &at(line, axis, place));
                emitter.keep_sorted(data, &at(line, axis, rank), element, place);
            });
        });
    }

    /// Puts the least keys of a line in order: `held` of its `extent`, of which the first `kept` are wanted.
    fn least_keys(
        &mut self,
        keys: &Buffer<'c>,
        extent: i64,
        held: i64,
        kept: i64,
        key: &mut dyn FnMut(&mut Self, IntValue<'c>) -> IntValue<'c>,
    ) {
        let (ir, step) = (self.ir, i64::from(LANES));
        // The first piece is what others leave of the line, so that these are whole.
        let first = if extent % held == 0 { held } else { extent % held };
        self.put_keys(keys, Piece { first: ir.i64(0), count: first, padded: held }, None, key);
        self.sort_keys(keys, held);
        let (piece, bounds) =
            (self.buffers.further(keys, ir.i64(held)), (ir.i64(first), ir.i64(extent), ir.i64(held)));
        ir.each(bounds, LoopHint::Rolled, |first| {
            let last = self.buffers.load(keys, ir.i64(kept - 1)).into_int_value();
            let whole = Piece { first, count: held, padded: held };
            let has_less = self.put_keys(&piece, whole, Some(last), key);
            ir.if_then(has_less, || {
                self.sort_keys(&piece, held);
                each(ir, ir.i64(held), ir.i64(step), |i| {
                    let mirrored = ir.sub(ir.i64(held - step), i);
                    self.put_in_order([(keys, i), (&piece, mirrored)], Second::Backwards);
                });
                self.merge_halves(keys, ir.i64(held), ir.i64(held / 2));
            });
        });
    }

    /// Stores the keys of a piece of a line. Says whether one of them is less than a key, if it is given one.
    fn put_keys(
        &mut self,
        keys: &Buffer<'c>,
        Piece { first, count, padded }: Piece<'c>,
        last: Option<IntValue<'c>>,
        key: &mut dyn FnMut(&mut Self, IntValue<'c>) -> IntValue<'c>,
    ) -> IntValue<'c> {
        let (ir, lanes) = (self.ir, i64::from(LANES));
        let vectors = count / lanes * lanes;
        let last = last.map(|last| ir.in_every_lane(last.into(), LANES));
        let mut put = |emitter: &mut Self, i| {
            let key = key(emitter, ir.add(first, i));
            emitter.buffers.store(keys, i, key.into());
        };
        let is_less = |emitter: &Self, i, less| match last {
            Some(last) => ir.or(less, ir.is_any_less(emitter.buffers.load_lanes(keys, i, None, LANES), last)),
            None => less,
        };
        let bounds = (ir.i64(0), ir.i64(vectors), ir.i64(lanes));
        let less = ir.hinted_loop(bounds, LoopHint::Rolled, &[ir.bool(false).into()], |i, less| {
            self.each_lane(lanes, |emitter, lane| put(emitter, ir.add(i, lane)));
            vec![is_less(self, i, less[0].into_int_value()).into()]
        });
        let mut less = less[0].into_int_value();
        // The vector in which the elements end, if it has some.
        each_index_of(ir, vectors..count, |i| put(self, i));
        each_index_of(ir, count..padded, |i| self.buffers.store(keys, i, ir.i64(i64::MAX).into()));
        if vectors < count {
            less = is_less(self, ir.i64(vectors), less);
        }
        less
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
                    let both = [(keys, ir.add(begin, i)), (keys, ir.sub(last, i))];
                    self.put_in_order(both, Second::Backwards);
                });
            });
            self.merge_halves(keys, end, half(half(merged)));
            let next = ir.add(merged, merged);
            (goes_on(next), vec![next.into()])
        });
    }

    /// Puts in order what rises and falls once, in each part of keys of twice this distance.
    fn merge_halves(&self, keys: &Buffer<'c>, end: IntValue<'c>, distance: IntValue<'c>) {
        let (ir, step) = (self.ir, self.ir.i64(LANES.into()));
        let is_apart = |distance| ir.icmp(IntPredicate::UGE, distance, step);
        ir.while_loop(is_apart(distance), &[distance.into()], |distance| {
            let distance = distance[0].into_int_value();
            each(ir, end, ir.add(distance, distance), |begin| {
                each(ir, distance, step, |i| {
                    let low = ir.add(begin, i);
                    self.put_in_order([(keys, low), (keys, ir.add(low, distance))], Second::AsItIs);
                });
            });
            let next = ir.lshr(distance, ir.i64(1));
            (is_apart(next), vec![next.into()])
        });
        self.each_key_vector(keys, end, &[4, 2, 1]);
    }

    /// Compares two vectors of keys lane by lane, and leaves the lesser keys in the first.
    fn put_in_order(&self, vectors: [(&Buffer<'c>, IntValue<'c>); 2], second: Second) {
        let ir = self.ir;
        let turned = |vector| match second {
            Second::AsItIs => vector,
            Second::Backwards => ir.lanes_of(vector, |lane| LANES - 1 - lane),
        };
        let [a, b] = vectors.map(|(keys, first)| self.buffers.load_lanes(keys, first, None, LANES));
        let [lesser, greater] = ir.in_order(a, turned(b));
        for ((keys, first), vector) in vectors.into_iter().zip([lesser, turned(greater)]) {
            self.buffers.store_lanes(keys, first, None, vector);
        }
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
                let before = ir.stands_before(dtype, descending, element, own, earlier);
                vec![ir.add(rank[0].into_int_value(), ir.zext_or_trunc(before, 64)).into()]
            });
            let rank = rank[0].into_int_value();
            ir.if_then(ir.icmp(IntPredicate::ULT, rank, ir.i64(kept[axis])), || {
                emitter.keep_sorted(data, &at(index, axis, rank), own, place);
            });
        });
    }

    /// Stores an element and the place where it was.
    fn keep_sorted(
        &mut self,
        data: &OpData,
        index: &[IntValue<'c>],
        element: Value<'c>,
        place: IntValue<'c>,
    ) {
        let (values, places) = (self.stored(data.results[0]), self.stored(data.results[1]));
        let position = self.position(index, &self.shape(data.results[0]));
        self.buffers.store(&values, position, element);
        self.buffers.store(&places, position, self.ir.zext_or_trunc(place, 32).into());
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
    ir.each((ir.i64(0), end, step), LoopHint::Rolled, body);
}

/// `for i in range`.
fn each_index_of<'c>(ir: &Ir<'c>, range: Range<i64>, body: impl FnOnce(IntValue<'c>)) {
    let count = range.end - range.start;
    each_index(ir, ir.i64(count), count, |i| body(ir.add(ir.i64(range.start), i)));
}

impl<'c> Ir<'c> {
    /// Whether a lane of a vector of keys is less than the other's.
    fn is_any_less(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> IntValue<'c> {
        let positioned = "the builder is positioned";
        let less = self.builder.build_int_compare(IntPredicate::SLT, a, b, "").expect(positioned);
        let bits =
            self.builder.build_bit_cast(less, self.int_type(LANES), "").expect(positioned).into_int_value();
        self.icmp(IntPredicate::NE, bits, bits.get_type().const_zero())
    }

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
