//! Reductions. Along the last axis in [`LANES`] partial results, so that the loop vectorises without
//! reordering a single sum; along others row by row.

use super::buffer::Buffer;
use super::region::Emitter;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::ops::ReduceOp;

/// Partial results of a reduction along the last axis: a native vector of f32.
const LANES: i64 = 16;

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn reduce(&mut self, data: &'a OpData, op: ReduceOp, axis: usize) {
        let shape = self.shape(data.operands[0]);
        let result = self.stored(data.results[0]);
        if axis + 1 == shape.len() && shape[axis] >= 2 * LANES {
            self.reduce_rows(data, op, &shape, &result);
        } else {
            self.reduce_outer(data, op, axis, &shape, &result);
        }
    }

    /// Result element by result element of all axes but the reduced, which is the outer loop: the first
    /// element is taken, the others are joined to it.
    fn reduce_outer(
        &mut self,
        data: &'a OpData,
        op: ReduceOp,
        axis: usize,
        shape: &[i64],
        result: &Buffer<'c>,
    ) {
        let (operand, dtype) = (data.operands[0], self.dtype(data.operands[0]));
        let mut lines = shape.to_vec();
        lines[axis] = 1;
        self.fill(result, &lines, |emitter, index| emitter.element(operand, index));
        let (outer, inner) = lines.split_at(axis);
        self.nest(outer, &mut |emitter, before| {
            let ir = emitter.ir;
            ir.for_loop((ir.i64(1), ir.i64(shape[axis]), ir.i64(1)), &[], |k, _| {
                emitter.nest(inner, &mut |emitter, after| {
                    let position = emitter.position(&[before, after].concat(), &lines);
                    let mut index = [before, after].concat();
                    index[axis] = k;
                    let element = emitter.element(operand, &index);
                    let partial = emitter.buffers.load(result, position);
                    let joined = emitter.ir.binary(op.combine(), dtype, partial, element);
                    emitter.buffers.store(result, position, joined);
                });
                Vec::new()
            });
        });
    }

    /// Row by row: the partial results of the lanes are in registers after LLVM's optimisation.
    fn reduce_rows(&mut self, data: &'a OpData, op: ReduceOp, shape: &[i64], result: &Buffer<'c>) {
        let (operand, dtype) = (data.operands[0], self.dtype(data.operands[0]));
        let (&width, rows) = shape.split_last().expect("verified: the reduced axis exists");
        let ty = self.ir.compute_type(dtype);
        let lanes = self.lane_array(ty);
        self.nest(rows, &mut |emitter, row| {
            let ir = emitter.ir;
            let lane = |l: IntValue<'c>| ir.element(ty, lanes, l);
            let at = |i: IntValue<'c>| [row, &[i]].concat();
            ir.for_each(ir.i64(LANES), |l| {
                let first = emitter.element(operand, &at(l));
                ir.store(lane(l), first);
            });
            let whole = width / LANES * LANES;
            ir.for_loop((ir.i64(LANES), ir.i64(whole), ir.i64(LANES)), &[], |start, _| {
                ir.for_each(ir.i64(LANES), |l| {
                    let element = emitter.element(operand, &at(ir.add(start, l)));
                    let partial = ir.load(ty, lane(l));
                    ir.store(lane(l), ir.binary(op.combine(), dtype, partial, element));
                });
                Vec::new()
            });
            let mut total = ir.load(ty, lane(ir.i64(0)));
            for l in 1..LANES {
                total = ir.binary(op.combine(), dtype, total, ir.load(ty, lane(ir.i64(l))));
            }
            let totals = ir.for_loop((ir.i64(whole), ir.i64(width), ir.i64(1)), &[total], |i, carried| {
                let element = emitter.element(operand, &at(i));
                vec![ir.binary(op.combine(), dtype, carried[0], element)]
            });
            let position = emitter.position(row, rows);
            emitter.buffers.store(result, position, totals[0]);
        });
    }

    /// Stack space for the lanes, in the entry block, so that it is allocated once.
    fn lane_array(&self, ty: inkwell::types::BasicTypeEnum<'c>) -> inkwell::values::PointerValue<'c> {
        use inkwell::types::BasicType;
        let ir = self.ir;
        let here = ir.builder.get_insert_block().expect("the builder is positioned");
        let entry = ir.function().get_first_basic_block().expect("a function has an entry");
        let first = entry.get_first_instruction().expect("the entry loads the arguments");
        ir.builder.position_before(&first);
        let array =
            ir.builder.build_alloca(ty.array_type(LANES as u32), "lanes").expect("the builder is positioned");
        ir.builder.position_at_end(here);
        array
    }
}
