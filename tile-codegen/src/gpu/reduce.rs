//! Reductions along one axis: first within each thread, then across the threads that hold the rest.
//!
//! A tile is seen as `[outer, extent, inner]` around the reduced axis. Where the axis runs over whole slots,
//! a thread joins its own slots; what remains is a tile `[outer, rest, inner]` held like any other. If `rest`
//! isn't 1, that goes to shared memory, where a group of threads per result joins it: each thread every
//! `group`-th element, then pairs of partial results. Sums and products of f16 and bf16 are kept in f32 and rounded
//! once.

use super::distribution::{Distribution, Slot, extents, quotient, remainder};
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::{Buffer, Request};
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::ops::ReduceOp;
use tile_ir::{DType, Instance, OpId};

/// A reduction's extents and how it is split.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    op: ReduceOp,
    /// The format in which elements are joined.
    dtype: DType,
    outer: u64,
    inner: u64,
    /// Extent of the axis after each thread has joined its slots.
    rest: u64,
    /// Slots `[_, joined, stride]` of the operand that a thread joins.
    joined: u64,
    slot_stride: u64,
    /// Threads per result that join the rest; 1 where a thread joins whole results.
    group: u64,
}

impl Reduction {
    fn of(
        instance: &Instance,
        distribution: Distribution,
        data: &OpData,
        op: ReduceOp,
        axis: usize,
    ) -> Reduction {
        let shape = extents(instance, data.operands[0]);
        let dtype =
            instance.ty(data.operands[0]).elem().known().expect("an instance has no dtype parameters");
        let (outer, extent) = (shape[..axis].iter().product::<u64>(), shape[axis]);
        let inner = shape[axis + 1..].iter().product::<u64>();
        let threads = distribution.threads;
        let (rest, slot_stride) = if inner.is_multiple_of(threads) {
            (1, inner / threads)
        } else if threads.is_multiple_of(inner) && extent.is_multiple_of(threads / inner) {
            (threads / inner, 1)
        } else {
            (extent, 1)
        };
        let results = outer * inner;
        let floor = |n: u64| 1 << n.ilog2();
        let group = if results < threads { floor(threads / results).min(floor(rest)) } else { 1 };
        Reduction {
            op,
            dtype: op.partial(dtype),
            outer,
            inner,
            rest,
            joined: extent / rest,
            slot_stride,
            group,
        }
    }

    fn results(&self) -> u64 {
        self.outer * self.inner
    }
}

/// The shared memory that the op needs: the tile that threads can't reduce on their own, and a partial result
/// per thread.
pub(super) fn requests(
    instance: &Instance,
    distribution: Distribution,
    data: &OpData,
    op: ReduceOp,
    axis: usize,
) -> Vec<Request> {
    let reduction = Reduction::of(instance, distribution, data, op, axis);
    let request = |elements| Request { dtype: reduction.dtype, elements };
    match (reduction.rest, reduction.group) {
        (1, _) => Vec::new(),
        (rest, 1) => vec![request(distribution.padded(reduction.results() * rest))],
        (rest, _) => {
            vec![request(distribution.padded(reduction.results() * rest)), request(distribution.threads)]
        }
    }
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn reduce(&mut self, op: OpId, data: &OpData, kind: ReduceOp, axis: usize) {
        let reduction = Reduction::of(self.instance, self.distribution, data, kind, axis);
        let (operand, result) = (data.operands[0], data.results[0]);
        let source = self.tile(operand).clone();
        let mut fragment = self.within_threads(&reduction, &source, self.dtype(operand));
        if reduction.rest > 1 {
            fragment = self.across_threads(&reduction, &self.plan.buffers(op), &fragment);
        }
        let dtype = self.dtype(result);
        if dtype != reduction.dtype {
            fragment = self.map(reduction.results(), dtype, |slot| {
                let sum = self.get(&fragment, reduction.dtype, slot).into_float_value();
                self.ir.round_to(sum, dtype).into()
            });
        }
        self.set_tile(result, fragment);
    }

    fn join(&self, reduction: &Reduction, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.ir.binary(reduction.op.combine(), reduction.dtype, a, b)
    }

    /// The tile `[outer, rest, inner]`.
    fn within_threads(&self, reduction: &Reduction, source: &Fragment<'c>, dtype: DType) -> Fragment<'c> {
        if reduction.joined == 1 {
            return source.clone();
        }
        let &Reduction { joined, slot_stride: stride, .. } = reduction;
        let elements = reduction.results() * reduction.rest;
        self.map(elements, reduction.dtype, |slot| {
            let first = match slot {
                Slot::Fixed(slot) => Slot::Fixed(slot / stride * stride * joined + slot % stride),
                Slot::Varying(slot) => {
                    let outer = self.ir.mul(quotient(self.ir, slot, stride), self.i32(stride * joined));
                    Slot::Varying(self.ir.add(outer, remainder(self.ir, slot, stride)))
                }
            };
            self.join_slots(reduction, source, dtype, first)
        })
    }

    fn join_slots(
        &self,
        reduction: &Reduction,
        source: &Fragment<'c>,
        dtype: DType,
        first: Slot<'c>,
    ) -> Value<'c> {
        let ir = self.ir;
        let initial = self.get(source, dtype, first);
        if let (Slot::Fixed(first), false) = (first, matches!(source, Fragment::Local(_))) {
            let slots = (1..reduction.joined).map(|i| Slot::Fixed(first + i * reduction.slot_stride));
            return slots.fold(initial, |sum, slot| self.join(reduction, sum, self.get(source, dtype, slot)));
        }
        let first = match first {
            Slot::Fixed(slot) => self.i32(slot),
            Slot::Varying(slot) => slot,
        };
        let bounds = (self.i32(1), self.i32(reduction.joined), self.i32(1));
        let sums = ir.for_loop(bounds, &[initial], |i, sums| {
            let slot = ir.add(first, ir.mul(i, self.i32(reduction.slot_stride)));
            vec![self.join(reduction, sums[0], self.get(source, dtype, Slot::Varying(slot)))]
        });
        sums[0]
    }

    fn across_threads(
        &mut self,
        reduction: &Reduction,
        buffers: &[Buffer],
        fragment: &Fragment<'c>,
    ) -> Fragment<'c> {
        let tile = buffers[0];
        self.reserve(buffers);
        self.share(tile, fragment, reduction.results() * reduction.rest, reduction.dtype);
        self.sync();
        self.pending.read(tile);
        match buffers.get(1) {
            None => self.join_alone(reduction, tile),
            Some(&partial) => self.join_in_groups(reduction, tile, partial),
        }
    }

    /// Where in the tile `[outer, rest, inner]` the elements of a result start; they are `inner` apart.
    fn line(&self, reduction: &Reduction, result: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let outer = quotient(ir, result, reduction.inner);
        let inner = remainder(ir, result, reduction.inner);
        ir.add(ir.mul(outer, self.i32(reduction.rest * reduction.inner)), inner)
    }

    /// Joins elements `first, first + step, …` of a line.
    fn join_line(
        &self,
        reduction: &Reduction,
        tile: Buffer,
        line: IntValue<'c>,
        (first, step): (IntValue<'c>, u64),
    ) -> Value<'c> {
        let ir = self.ir;
        let read =
            |i: IntValue<'c>| self.read_shared(tile, ir.add(line, ir.mul(i, self.i32(reduction.inner))));
        let step = self.i32(step);
        let bounds = (ir.add(first, step), self.i32(reduction.rest), step);
        let sums =
            ir.for_loop(bounds, &[read(first)], |i, sums| vec![self.join(reduction, sums[0], read(i))]);
        sums[0]
    }

    fn join_alone(&self, reduction: &Reduction, tile: Buffer) -> Fragment<'c> {
        let mapping = self.mapping(&[reduction.results()]);
        self.map(reduction.results(), reduction.dtype, |slot| {
            let line = self.line(reduction, mapping.element(self.ir, slot));
            self.join_line(reduction, tile, line, (self.i32(0), 1))
        })
    }

    /// Thread `result · group + member` joins its share; then halves of the group are joined. Threads beyond
    /// the last group repeat its work on partial results of their own.
    fn join_in_groups(&mut self, reduction: &Reduction, tile: Buffer, partial: Buffer) -> Fragment<'c> {
        let (ir, group) = (self.ir, reduction.group);
        let last = self.i32(reduction.results() - 1);
        let result = quotient(ir, self.thread, group);
        let result = ir.select_int(ir.icmp(IntPredicate::ULT, result, last), result, last);
        let member = remainder(ir, self.thread, group);
        let line = self.line(reduction, result);
        let own = self.join_line(reduction, tile, line, (member, group));
        self.write_shared(partial, self.thread, own);
        let mut half = group / 2;
        while half > 0 {
            self.sync();
            let joins = ir.icmp(IntPredicate::ULT, member, self.i32(half));
            ir.if_then(joins, || {
                let other = self.read_shared(partial, ir.add(self.thread, self.i32(half)));
                let sum = self.join(reduction, self.read_shared(partial, self.thread), other);
                self.write_shared(partial, self.thread, sum);
            });
            half /= 2;
        }
        self.sync();
        self.pending.read(partial);
        let mapping = self.mapping(&[reduction.results()]);
        self.map(reduction.results(), reduction.dtype, |slot| {
            let result = mapping.element(ir, slot);
            self.read_shared(partial, ir.mul(result, self.i32(group)))
        })
    }
}
