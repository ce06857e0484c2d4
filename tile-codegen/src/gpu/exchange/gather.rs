//! Gather and scatter along an axis, through shared memory.
//!
//! A gather costs one read per element of its result. A scatter has no order between threads, so it is turned
//! round: each element of the result looks through its line of the indices, in order, for those that name it. That
//! costs as many reads per element as the indices have positions along the axis, and is the same on every run.

use crate::emit::Value;
use crate::emit::positions::Positions;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::gpu::Buffer;
use tile_ir::kernel::OpData;
use tile_ir::ops::{BinaryOp, ScatterMode};
use tile_ir::{OpId, ValueId};

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn i32_positions(&self) -> Positions<'_, 'c> {
        Positions { ir: self.ir, ty: self.ir.context.i32_type() }
    }

    pub(in crate::gpu) fn extents_of(&self, value: ValueId) -> Vec<usize> {
        self.shape(value).iter().map(|&extent| extent as usize).collect()
    }

    /// An index as an i64.
    fn wide(&self, index: Value<'c>, indices: ValueId) -> IntValue<'c> {
        self.ir.resize(index.into_int_value(), 64, self.dtype(indices).is_signed())
    }

    pub(in crate::gpu) fn gather(&mut self, op: OpId, data: &OpData, axis: usize) {
        let &[tile, indices, fill] = data.operands.as_slice() else {
            unreachable!("verified: a gather has three operands")
        };
        let fill = self.scalar(fill);
        let buffer = self.share_all(op, &[tile])[0];
        let (shape, ir) = (self.extents_of(tile), self.ir);
        let mapping = self.mapping(indices);
        let extent = ir.i64(shape[axis] as i64);
        let source = self.tile(indices).clone();
        let fragment = self.map(indices, |slot| {
            let index = self.wide(source.get(slot), indices);
            let inside = ir.icmp(IntPredicate::ULT, index, extent);
            let mut from = mapping.index(ir, slot);
            from[axis] = ir.select_int(inside, ir.resize(index, 32, false), self.i32(0));
            let place = mapping.or_zero(ir, slot, self.i32_positions().linear(&from, &shape));
            let value = self.read_shared(buffer, place);
            ir.select(inside, value, fill)
        });
        self.set_tile(data.results[0], fragment);
    }

    pub(in crate::gpu) fn scatter(&mut self, op: OpId, data: &OpData, axis: usize, mode: ScatterMode) {
        let &[tile, indices, values] = data.operands.as_slice() else {
            unreachable!("verified: a scatter has three operands")
        };
        let buffers = self.share_all(op, &[indices, values]);
        let line = Line { indices, buffers: [buffers[0], buffers[1]], shape: self.extents_of(indices), axis };
        let mapping = self.mapping(tile);
        let (before, dtype) = (self.tile(tile).clone(), self.dtype(tile));
        let fragment = self.map(tile, |slot| {
            let inside = |place| mapping.or_zero(self.ir, slot, place);
            let index: Vec<_> = mapping.index(self.ir, slot).into_iter().map(inside).collect();
            let value = before.get(slot);
            match mode {
                ScatterMode::Write => self.last_of(&line, &index, value),
                ScatterMode::Add => {
                    let add = |sum, value| self.ir.binary(BinaryOp::Add, dtype, sum, value);
                    self.sum_of(&line, &index, value, &add)
                }
            }
        });
        self.set_tile(data.results[0], fragment);
    }

    /// The last value whose index names an element, or what was there.
    fn last_of(&self, line: &Line, index: &[IntValue<'c>], before: Value<'c>) -> Value<'c> {
        let ir = self.ir;
        let nowhere = ir.context.i32_type().const_all_ones();
        let last = self
            .each_of(line, index, nowhere.into(), &|last, k, names_it| ir.select(names_it, k.into(), last));
        let last = last.into_int_value();
        let found = ir.icmp(IntPredicate::NE, last, nowhere);
        let place = self.line_place(line, index, ir.select_int(found, last, self.i32(0)));
        ir.select(found, self.read_shared(line.buffers[1], place), before)
    }

    /// What was there and the values whose indices name it, added in order.
    fn sum_of(
        &self,
        line: &Line,
        index: &[IntValue<'c>],
        before: Value<'c>,
        add: &dyn Fn(Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        self.each_of(line, index, before, &|sum, k, names_it| {
            let value = self.read_shared(line.buffers[1], self.line_place(line, index, k));
            self.ir.select(names_it, add(sum, value), sum)
        })
    }

    /// Folds over a line's positions; `step` is told whether the index there names the element.
    fn each_of(
        &self,
        line: &Line,
        index: &[IntValue<'c>],
        initial: Value<'c>,
        step: &dyn Fn(Value<'c>, IntValue<'c>, IntValue<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let ir = self.ir;
        let element = ir.resize(index[line.axis], 64, false);
        let bounds = (self.i32(0), self.i32(line.shape[line.axis] as u64), self.i32(1));
        let found = ir.for_loop(bounds, &[initial], |k, carried| {
            let named = self.read_shared(line.buffers[0], self.line_place(line, index, k));
            let names_it = ir.icmp(IntPredicate::EQ, self.wide(named, line.indices), element);
            vec![step(carried[0], k, names_it)]
        });
        found[0]
    }

    /// The number of a line's position `k`.
    fn line_place(&self, line: &Line, index: &[IntValue<'c>], k: IntValue<'c>) -> IntValue<'c> {
        let mut index = index.to_vec();
        index[line.axis] = k;
        self.i32_positions().linear(&index, &line.shape)
    }
}

/// The indices and values that a scatter's elements look through.
struct Line {
    indices: ValueId,
    /// Of the indices and of the values.
    buffers: [Buffer; 2],
    shape: Vec<usize>,
    axis: usize,
}
