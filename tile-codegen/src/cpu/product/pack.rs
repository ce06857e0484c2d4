//! Packing: the factors of a product as register blocks read them.
//!
//! `b` goes to panels, row by row. `a` goes to a matrix, row by row or column by column, as its elements are neighbours
//! in memory. Where `b` has its neighbours along the columns, squares of it are transposed in registers. Elements that
//! the tensor doesn't have are the load's padding; where that is zero for both factors, places along K without any
//! element are left out.

use super::super::buffer::Buffer;
use super::super::elements::count;
use super::super::region::Emitter;
use super::Needed;
use super::factor::{Factor, Strided};
use super::plan::Plan;
use crate::emit::{LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Packs the factors of a matrix behind what is packed already, so deep; gives how much deeper it is then.
    pub(super) fn pack(
        &mut self,
        data: &'a OpData,
        plan: &Plan,
        (matrix, at): (IntValue<'c>, IntValue<'c>),
        needed: Needed<'c>,
    ) -> IntValue<'c> {
        let (a, b) =
            (self.factor(data.operands[0], matrix, plan), self.factor(data.operands[1], matrix, plan));
        let depth = self.depth_of(&a, &b, plan);
        if let Some(packed) = self.buffers.packed(data.results[0], 0, plan.packed) {
            self.pack_a(&a, plan, &packed, (matrix, at), (needed.rows, depth));
        }
        let packed = self.buffers.packed(data.results[0], 1, plan.packed).expect("`b` is always packed");
        self.pack_b(&b, plan, &packed, (matrix, at), (depth, needed.columns));
        depth
    }

    /// How deep a product is: as far as one of the factors has elements, where both have zeros behind.
    fn depth_of(&self, a: &Factor<'c>, b: &Factor<'c>, plan: &Plan) -> IntValue<'c> {
        let ir = self.ir;
        let ends = |factor: &Factor<'c>, axis: usize| match factor {
            Factor::Strided(Strided { valid: Some(valid), is_padded_with_zero: true, .. }) => {
                Some(valid[axis])
            }
            _ => None,
        };
        match (ends(a, 1), ends(b, 0)) {
            (Some(a), Some(b)) => ir.select_int(ir.icmp(IntPredicate::UGT, a, b), a, b),
            _ => ir.i64(plan.k),
        }
    }

    fn pack_a(
        &mut self,
        a: &Factor<'c>,
        plan: &Plan,
        to: &Buffer<'c>,
        (matrix, at): (IntValue<'c>, IntValue<'c>),
        (rows, depth): (IntValue<'c>, IntValue<'c>),
    ) {
        let ir = self.ir;
        match a {
            Factor::Strided(from) => {
                let by_rows = from.contiguous == 1;
                let [row, column] = plan.strides_of_a(by_rows).map(|stride| ir.i64(stride));
                let first = ir.mul(at, column);
                let (lines, stride) = if by_rows { ((rows, depth), row) } else { ((depth, rows), column) };
                self.copy_lines(
                    from,
                    plan,
                    [plan.m, plan.k],
                    lines,
                    None,
                    &mut |emitter, line, place, vector| {
                        let position = ir.add(ir.add(first, ir.mul(line, stride)), place);
                        emitter.buffers.store_as(to, position, vector.into());
                    },
                );
            }
            Factor::Computed(value) => {
                let [row, _] = plan.strides_of_a(true).map(|stride| ir.i64(stride));
                let shape = (plan.m, plan.k, plan.k);
                self.pack_computed(*value, matrix, shape, &mut |emitter, [i, _, p], element| {
                    let position = ir.add(ir.mul(i, row), ir.add(at, p));
                    emitter.buffers.store(to, position, element);
                });
            }
        }
    }

    fn pack_b(
        &mut self,
        b: &Factor<'c>,
        plan: &Plan,
        to: &Buffer<'c>,
        (matrix, at): (IntValue<'c>, IntValue<'c>),
        (depth, columns): (IntValue<'c>, IntValue<'c>),
    ) {
        let ir = self.ir;
        let (width, panel) = (plan.block.width(), plan.panel());
        let place = |p: IntValue<'c>, j: IntValue<'c>| {
            let (panels, in_panel) = (ir.udiv(j, ir.i64(width)), ir.urem(j, ir.i64(width)));
            let row = ir.mul(ir.add(at, p), ir.i64(width));
            ir.add(ir.add(ir.mul(panels, ir.i64(panel)), row), in_panel)
        };
        match b {
            Factor::Strided(from) if from.contiguous == 1 => {
                let lines = (depth, columns);
                self.copy_lines(
                    from,
                    plan,
                    [plan.k, plan.n],
                    lines,
                    Some(width),
                    &mut |emitter, p, j, vector| {
                        emitter.buffers.store_as(to, place(p, j), vector.into());
                    },
                );
            }
            Factor::Strided(from) => {
                self.transpose_squares(from, plan, (depth, columns), &mut |emitter, p, j, row| {
                    emitter.buffers.store_as(to, place(p, j), row.into());
                })
            }
            Factor::Computed(value) => {
                let shape = (plan.k, plan.n, width);
                self.pack_computed(*value, matrix, shape, &mut |emitter, [p, number, j], element| {
                    let row = ir.mul(ir.add(at, p), ir.i64(width));
                    let position = ir.add(ir.add(ir.mul(number, ir.i64(panel)), row), j);
                    emitter.buffers.store(to, position, element);
                });
            }
        }
    }

    /// Gives lines along the contiguous axis of a matrix of these extents, vector by vector: `outer` lines up to their
    /// place `inner`; in strips of this width, one after the other, if there is one. The last vector of a line may go
    /// beyond the matrix.
    fn copy_lines(
        &mut self,
        from: &Strided<'c>,
        plan: &Plan,
        extents: [i64; 2],
        (outer, inner): (IntValue<'c>, IntValue<'c>),
        strip: Option<i64>,
        give: &mut dyn FnMut(&mut Self, IntValue<'c>, IntValue<'c>, VectorValue<'c>),
    ) {
        let (ir, lanes, width) = (self.ir, plan.block.lanes, extents[from.contiguous]);
        let index = |line, place| if from.contiguous == 1 { [line, place] } else { [place, line] };
        let ends = from.valid.map(|valid| [valid[1 - from.contiguous], valid[from.contiguous]]);
        let this = std::cell::RefCell::new((&mut *self, give));
        let copy = |line: IntValue<'c>, place: IntValue<'c>, mask: Option<VectorValue<'c>>| {
            let (emitter, give) = &mut *this.borrow_mut();
            let address = emitter.address_in(from, index(line, place));
            let vector = emitter.packed_vector(from, address, mask, lanes as u32, plan);
            give(emitter, line, place, vector);
        };
        let masked = |line: IntValue<'c>, place: IntValue<'c>| {
            let end = match ends {
                Some([lines, end]) => ir.select_int(ir.icmp(IntPredicate::ULT, line, lines), end, ir.i64(0)),
                None => ir.i64(width),
            };
            let rest = ir.select_int(ir.icmp(IntPredicate::ULT, place, end), ir.sub(end, place), ir.i64(0));
            ir.lanes_below(rest, lanes as u32)
        };
        let each = |end: IntValue<'c>, step: i64, body: &dyn Fn(IntValue<'c>)| {
            ir.hinted_loop((ir.i64(0), end, ir.i64(step)), LoopHint::Rolled, &[], |i, _| {
                body(i);
                Vec::new()
            });
        };
        let lines = |is_whole: bool| match strip {
            Some(strip) => each(inner, strip, &|start| {
                each(outer, 1, &|line| {
                    for vector in 0..strip / lanes {
                        let place = ir.add(start, ir.i64(vector * lanes));
                        let mask = (!is_whole || width % strip != 0).then(|| masked(line, place));
                        copy(line, place, mask);
                    }
                });
            }),
            None => each(outer, 1, &|line| {
                each(inner, lanes, &|place| {
                    let mask = (!is_whole || width % lanes != 0).then(|| masked(line, place));
                    copy(line, place, mask);
                });
            }),
        };
        let Some(valid) = from.valid else { return lines(true) };
        let all =
            valid.iter().zip(extents).map(|(&end, extent)| ir.icmp(IntPredicate::EQ, end, ir.i64(extent)));
        let all = all.reduce(|a, b| ir.and(a, b)).expect("a matrix has two axes");
        let either = |is_whole| {
            lines(is_whole);
            Vec::new()
        };
        ir.if_else(all, || either(true), || either(false));
    }

    /// Gives the rows of a matrix whose columns are contiguous: squares of it are read column by column and transposed.
    /// The last square goes beyond the matrix.
    fn transpose_squares(
        &mut self,
        from: &Strided<'c>,
        plan: &Plan,
        (rows, columns): (IntValue<'c>, IntValue<'c>),
        give: &mut dyn FnMut(&mut Self, IntValue<'c>, IntValue<'c>, VectorValue<'c>),
    ) {
        let (ir, side) = (self.ir, plan.block.lanes);
        let [end_of_rows, end_of_columns] = from.valid.unwrap_or([ir.i64(plan.k), ir.i64(plan.n)]);
        let is_whole = from.valid.is_none() && plan.k % side == 0 && plan.n % side == 0;
        let this = std::cell::RefCell::new((&mut *self, give));
        let step = ir.i64(side);
        ir.hinted_loop((ir.i64(0), columns, step), LoopHint::Rolled, &[], |column, _| {
            ir.hinted_loop((ir.i64(0), rows, step), LoopHint::Rolled, &[], |row, _| {
                let (emitter, give) = &mut *this.borrow_mut();
                let rest = ir.select_int(
                    ir.icmp(IntPredicate::ULT, row, end_of_rows),
                    ir.sub(end_of_rows, row),
                    ir.i64(0),
                );
                let square = (0..side).map(|i| {
                    let j = ir.add(column, ir.i64(i));
                    let there = ir.icmp(IntPredicate::ULT, j, end_of_columns);
                    let mask = (!is_whole)
                        .then(|| ir.lanes_below(ir.select_int(there, rest, ir.i64(0)), side as u32));
                    let address = emitter.address_in(from, [row, j]);
                    emitter.packed_vector(from, address, mask, side as u32, plan)
                });
                let square: Vec<VectorValue<'c>> = square.collect();
                for (i, line) in ir.transposed(square).into_iter().enumerate() {
                    give(emitter, ir.add(row, ir.i64(i as i64)), column, line);
                }
                Vec::new()
            });
            Vec::new()
        });
    }

    /// Gives the elements of a computed matrix, row by row: the row, the number of a piece of it of this width, and the
    /// place in that.
    fn pack_computed(
        &mut self,
        value: ValueId,
        matrix: IntValue<'c>,
        (rows, columns, width): (i64, i64, i64),
        give: &mut dyn FnMut(&mut Self, [IntValue<'c>; 3], Value<'c>),
    ) {
        let ir = self.ir;
        let shape = self.shape(value);
        let batch: Vec<_> = shape[..shape.len() - 2].iter().map(|&extent| ir.i64(extent)).collect();
        let before = if batch.is_empty() { Vec::new() } else { ir.delinearize(matrix, &batch) };
        let (pieces, rest) = (columns / width, columns % width);
        self.with_streams_of(&[value], &[], &mut |emitter, _| {
            let this = std::cell::RefCell::new((&mut *emitter, &mut *give));
            let piece = |row: IntValue<'c>, piece: IntValue<'c>, width_of_piece: i64| {
                count(ir, ir.i64(width_of_piece), width_of_piece, |place| {
                    let (emitter, give) = &mut *this.borrow_mut();
                    let column = ir.add(ir.mul(piece, ir.i64(width)), place);
                    let element = emitter.element(value, &[before.as_slice(), &[row, column]].concat());
                    give(emitter, [row, piece, place], element);
                });
            };
            count(ir, ir.i64(rows), rows, |row| {
                if pieces > 0 {
                    count(ir, ir.i64(pieces), pieces, |number| piece(row, number, width));
                }
                if rest > 0 {
                    piece(row, ir.i64(pieces), rest);
                }
            });
        });
    }
}
