//! Reductions. Along the last axis in [`LANES`] partial results, so that the loop vectorises without
//! reordering a single sum and gives the same bits on every instruction set; along others row by row.
//!
//! Partial results start as the identity of the reduction, so what is reduced is emitted once. Sums and products
//! of f16 and bf16 are kept in f32 and rounded at the end.

use super::buffer::Buffer;
use super::elements::hint_for;
use super::region::Emitter;
use crate::emit::{LoopHint, Value};
use inkwell::types::{BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{IntValue, PointerValue, VectorValue};
use tile_ir::DType;
use tile_ir::kernel::OpData;
use tile_ir::ops::ReduceOp;

/// Partial results of a reduction along the last axis: a vector of f32 on the widest machines.
const LANES: i64 = 16;

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
        // A vector of i1 is packed in memory, its elements are not: truth values have no lanes.
        let has_lanes = dtype != DType::Bool && reduction.shape[axis] >= 2 * LANES;
        if axis + 1 == reduction.shape.len() && has_lanes {
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
        self.nest(outer, &mut |emitter, before| {
            let (ir, extent) = (emitter.ir, reduction.shape[axis]);
            ir.hinted_loop((ir.i64(0), ir.i64(extent), ir.i64(1)), hint_for(extent), &[], |k, _| {
                emitter.nest(inner, &mut |emitter, after| {
                    let mut index = [before, after].concat();
                    let position = emitter.position(&index, &lines);
                    index[axis] = k;
                    let element = emitter.element(operand, &index);
                    let partial = emitter.buffers.load(result, position);
                    emitter.buffers.store(result, position, emitter.join(reduction, partial, element));
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

    /// Row by row: the partial results of the lanes are in registers after LLVM's optimisation.
    fn reduce_rows(&mut self, reduction: &Reduction<'a, 'c>) {
        let operand = reduction.data.operands[0];
        let (&width, rows) = reduction.shape.split_last().expect("verified: the reduced axis exists");
        let whole = width / LANES * LANES;
        let ty = self.ir.compute_type(reduction.partial);
        let lanes = self.lane_array(ty);
        let start = self.lanes_of(self.identity(reduction));
        self.nest(rows, &mut |emitter, row| {
            let ir = emitter.ir;
            let lane = |l: IntValue<'c>| ir.element(ty, lanes, l);
            ir.store(lanes, start.into());
            ir.hinted_loop((ir.i64(0), ir.i64(whole), ir.i64(LANES)), LoopHint::Rolled, &[], |first, _| {
                let each = (ir.i64(0), ir.i64(LANES), ir.i64(1));
                ir.hinted_loop(each, LoopHint::Lanes(LANES as u32), &[], |l, _| {
                    let element = emitter.element(operand, &[row, &[ir.add(first, l)]].concat());
                    let partial = ir.load(ty, lane(l));
                    ir.store(lane(l), emitter.join(reduction, partial, element));
                    Vec::new()
                });
                Vec::new()
            });
            let partials = (0..LANES).map(|l| ir.load(ty, lane(ir.i64(l)))).collect();
            let mut total = emitter.join_all(reduction, partials);
            if whole < width {
                let rest = (ir.i64(whole), ir.i64(width), ir.i64(1));
                total = ir.hinted_loop(rest, LoopHint::Rolled, &[total], |i, carried| {
                    let element = emitter.element(operand, &[row, &[i]].concat());
                    vec![emitter.join(reduction, carried[0], element)]
                })[0];
            }
            let position = emitter.position(row, rows);
            emitter.buffers.store(&reduction.result, position, emitter.rounded(reduction, total));
        });
    }

    /// Joins neighbours, then neighbours of those, and so on: the shortest chain of dependent ops.
    fn join_all(&self, reduction: &Reduction<'a, 'c>, mut values: Vec<Value<'c>>) -> Value<'c> {
        while values.len() > 1 {
            let (low, high) = values.split_at(values.len() / 2);
            values = low.iter().zip(high).map(|(&a, &b)| self.join(reduction, a, b)).collect();
        }
        values[0]
    }

    fn lanes_of(&self, value: Value<'c>) -> VectorValue<'c> {
        match value {
            Value::FloatValue(value) => VectorType::const_vector(&[value; LANES as usize]),
            value => VectorType::const_vector(&[value.into_int_value(); LANES as usize]),
        }
    }

    /// Stack space for the lanes, in the entry block, so that it is allocated once.
    fn lane_array(&self, ty: BasicTypeEnum<'c>) -> PointerValue<'c> {
        let ir = self.ir;
        let here = ir.builder.get_insert_block().expect("the builder is positioned");
        let entry = ir.function().get_first_basic_block().expect("a function has an entry");
        let first = entry.get_first_instruction().expect("the entry loads the arguments");
        ir.builder.position_before(&first);
        let array = ir.builder.build_alloca(ty.array_type(LANES as u32), "lanes");
        let array = array.expect("the builder is positioned");
        let aligned = array.as_instruction().map(|alloca| alloca.set_alignment(64));
        aligned.expect("an alloca is an instruction").expect("64 is a power of two");
        ir.builder.position_at_end(here);
        array
    }
}
