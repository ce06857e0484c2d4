//! Reductions. Along the last axis in [`LANES`] partial results, so that the loop vectorises without
//! reordering a single sum and gives the same bits on every instruction set; along others row by row.
//!
//! Partial results start as the identity of the reduction, so what is reduced is emitted once. Sums and products
//! of f16 and bf16 are kept in f32 and rounded at the end.

use super::buffer::Buffer;
use super::elements::hint_for;
use super::fuse::is_reduction_of_rows;
use super::region::Emitter;
use crate::emit::{LoopHint, NanKey, Value};
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{IntValue, PointerValue, VectorValue};
use tile_ir::DType;
use tile_ir::kernel::OpData;
use tile_ir::ops::{BinaryOp, ReduceOp};

/// Partial results of a reduction along the last axis: a vector of f32 on the widest machines.
pub(super) const LANES: i64 = 16;

/// What is reduced, and how.
struct Reduction<'a, 'c> {
    data: &'a OpData,
    op: ReduceOp,
    axis: usize,
    shape: Vec<i64>,
    /// The format of partial results.
    partial: DType,
    result: Buffer<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn reduce(&mut self, data: &'a OpData, op: ReduceOp, axis: usize) {
        let dtype = self.dtype(data.operands[0]);
        let reduction = Reduction {
            data,
            op,
            axis,
            shape: self.shape(data.operands[0]),
            partial: op.partial(dtype),
            result: self.stored(data.results[0]),
        };
        if is_reduction_of_rows(self.instance, data) {
            self.reduce_rows(&reduction);
        } else {
            self.reduce_outer(&reduction);
        }
    }

    fn join(&self, reduction: &Reduction<'a, 'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.ir.binary(reduction.op.combine(), reduction.partial, a, b)
    }

    fn rounded(&self, reduction: &Reduction<'a, 'c>, total: Value<'c>) -> Value<'c> {
        self.ir.cast(reduction.partial, reduction.result.dtype, total)
    }

    fn identity(&self, reduction: &Reduction<'a, 'c>) -> Value<'c> {
        self.ir.literal(reduction.op.identity(reduction.partial), reduction.partial)
    }

    /// Result element by result element of all axes but the reduced, which is the outer loop.
    fn reduce_outer(&mut self, reduction: &Reduction<'a, 'c>) {
        let (axis, operand) = (reduction.axis, reduction.data.operands[0]);
        let mut lines = reduction.shape.clone();
        lines[axis] = 1;
        let identity = self.identity(reduction);
        let result = &reduction.result;
        self.fill(result, &lines, |_, _| identity);
        let (outer, inner) = lines.split_at(axis);
        // Behind the reduced axis there are rows, if there is one more.
        let gathers = match inner {
            [_, _] => self.fusion.gathers_of(reduction.data),
            _ => Vec::new(),
        };
        self.each_row(outer, &mut |emitter, before| {
            let (ir, extent) = (emitter.ir, reduction.shape[axis]);
            ir.hinted_loop((ir.i64(0), ir.i64(extent), ir.i64(1)), hint_for(extent), &[], |k, _| {
                let range = (ir.i64(0), ir.i64(inner[inner.len() - 1]));
                emitter.with_gathered_rows(&gathers, &[before, &[k]].concat(), range, &mut |emitter| {
                    emitter.nest(inner, &mut |emitter, after| {
                        let mut index = [before, after].concat();
                        let position = emitter.position(&index, &lines);
                        index[axis] = k;
                        let element = emitter.element(operand, &index);
                        let partial = emitter.buffers.load(result, position);
                        emitter.buffers.store(result, position, emitter.join(reduction, partial, element));
                    });
                });
                Vec::new()
            });
        });
        if reduction.partial != result.dtype {
            self.nest(&lines, &mut |emitter, index| {
                let position = emitter.position(index, &lines);
                let total = emitter.rounded(reduction, emitter.buffers.load(result, position));
                emitter.buffers.store(result, position, total);
            });
        }
    }

    /// Row by row: the partial results of the lanes are in registers after LLVM's optimisation. Where a row's end isn't
    /// that of a vector, the last elements are joined beside identities.
    fn reduce_rows(&mut self, reduction: &Reduction<'a, 'c>) {
        let (&width, rows) = reduction.shape.split_last().expect("verified: the reduced axis exists");
        let whole = width / LANES * LANES;
        let ty = self.partial_type(reduction);
        let identity = self.partial_of(reduction, self.identity(reduction));
        let start = self.lanes_of(identity);
        let [partials, rest] = [(); 2].map(|()| self.lane_array(ty, LANES));
        let gathers = self.fusion.gathers_of(reduction.data);
        self.each_row(rows, &mut |emitter, row| {
            let ir = emitter.ir;
            let place = |array, lane: IntValue<'c>| ir.element(ty, array, lane);
            let joined = |emitter: &mut Self, lane: IntValue<'c>, element: Value<'c>| {
                let before = ir.load(ty, place(partials, lane));
                ir.store(place(partials, lane), emitter.join_partials(reduction, before, element));
            };
            ir.store(partials, start.into());
            emitter.with_gathered_rows(&gathers, row, (ir.i64(0), ir.i64(width)), &mut |emitter| {
                let vectors = (ir.i64(0), ir.i64(whole), ir.i64(LANES));
                ir.hinted_loop(vectors, LoopHint::Rolled, &[], |first, _| {
                    emitter.prefetch_ahead(&reduction.shape, row, first, LANES);
                    emitter.each_lane(LANES, |emitter, lane| {
                        let element = emitter.reduced(reduction, row, ir.add(first, lane));
                        joined(emitter, lane, element);
                    });
                    Vec::new()
                });
                if whole < width {
                    ir.store(rest, start.into());
                    emitter.each_lane_below(LANES, ir.i64(width - whole), |emitter, lane| {
                        let element = emitter.reduced(reduction, row, ir.add(ir.i64(whole), lane));
                        ir.store(place(rest, lane), element);
                    });
                    emitter.each_lane(LANES, |emitter, lane| {
                        joined(emitter, lane, ir.load(ty, place(rest, lane)));
                    });
                }
            });
            let total = emitter.join_halves(reduction, (partials, ty));
            let total = emitter.value_of(reduction, total);
            let position = emitter.position(row, rows);
            emitter.buffers.store(&reduction.result, position, emitter.rounded(reduction, total));
        });
    }

    /// An element that is reduced, as partial results are. A tile that this loop computes is stored on the way.
    fn reduced(&mut self, reduction: &Reduction<'a, 'c>, row: &[IntValue<'c>], i: IntValue<'c>) -> Value<'c> {
        let index = [row, &[i]].concat();
        if let Some(made) = self.fusion.made_by(reduction.data) {
            let (tile, value) = (made.results[0], self.compute(made, &index));
            let position = self.position(&index, &reduction.shape);
            self.buffers.store(&self.stored(tile), position, value);
            self.fresh = Some((tile, value));
        }
        let element = self.element(reduction.data.operands[0], &index);
        self.fresh = None;
        self.partial_of(reduction, element)
    }

    /// How the partial results of rows are joined where they are keys, and what the key of NaN is.
    fn keys(&self, reduction: &Reduction<'a, 'c>) -> Option<(BinaryOp, NanKey)> {
        let keys = match reduction.op {
            ReduceOp::Max => (BinaryOp::Max, NanKey::Least),
            ReduceOp::Min => (BinaryOp::Min, NanKey::Greatest),
            ReduceOp::Maximum => (BinaryOp::Max, NanKey::Greatest),
            ReduceOp::Minimum => (BinaryOp::Min, NanKey::Least),
            _ => return None,
        };
        reduction.partial.is_float().then_some(keys)
    }

    fn partial_type(&self, reduction: &Reduction<'a, 'c>) -> BasicTypeEnum<'c> {
        match (self.keys(reduction), self.ir.compute_type(reduction.partial)) {
            (Some(_), BasicTypeEnum::FloatType(ty)) => self.ir.int_type(ty.get_bit_width()).into(),
            (_, ty) => ty,
        }
    }

    fn partial_of(&self, reduction: &Reduction<'a, 'c>, element: Value<'c>) -> Value<'c> {
        match self.keys(reduction) {
            Some((_, nan)) => self.ir.key_of_float(element.into_float_value(), nan).into(),
            None => element,
        }
    }

    fn join_partials(&self, reduction: &Reduction<'a, 'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match self.keys(reduction) {
            // Keys are signed, whatever their width.
            Some((op, _)) => self.ir.binary(op, DType::I32, a, b),
            None => self.join(reduction, a, b),
        }
    }

    /// The number that a partial result is.
    fn value_of(&self, reduction: &Reduction<'a, 'c>, partial: Value<'c>) -> Value<'c> {
        match (self.keys(reduction), self.ir.compute_type(reduction.partial)) {
            (Some(_), BasicTypeEnum::FloatType(ty)) => {
                self.ir.float_of_key(partial.into_int_value(), ty).into()
            }
            _ => partial,
        }
    }

    /// Joins the lanes of one half with those of the other, then the halves of what that gives, and so on: the shortest chain
    /// of dependent ops, each of which but the last is a vector's.
    fn join_halves(
        &mut self,
        reduction: &Reduction<'a, 'c>,
        (partials, ty): (PointerValue<'c>, BasicTypeEnum<'c>),
    ) -> Value<'c> {
        let ir = self.ir;
        let joined = |emitter: &Self, lane: IntValue<'c>, other: IntValue<'c>| {
            let [low, high] = [lane, other].map(|lane| ir.load(ty, ir.element(ty, partials, lane)));
            emitter.join_partials(reduction, low, high)
        };
        let halves = std::iter::successors(Some(LANES / 2), |&lanes| (lanes > 2).then_some(lanes / 2));
        for lanes in halves {
            self.each_lane(lanes, |emitter, lane| {
                let joined = joined(emitter, lane, ir.add(lane, ir.i64(lanes)));
                ir.store(ir.element(ty, partials, lane), joined);
            });
        }
        joined(self, ir.i64(0), ir.i64(1))
    }

    fn lanes_of(&self, value: Value<'c>) -> VectorValue<'c> {
        match value {
            Value::FloatValue(value) => VectorType::const_vector(&[value; LANES as usize]),
            value => VectorType::const_vector(&[value.into_int_value(); LANES as usize]),
        }
    }
}
