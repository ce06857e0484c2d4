//! Packing: writing a product's factors as register blocks read them.
//!
//! `b` is packed in panels, row by row. `a` is packed as a matrix, by rows or by columns, depending on which of them are
//! contiguous in memory. If the columns of `b` are, squares of it are transposed in registers. Elements outside the tensor
//! are the load's padding; if that is zero for both factors, indices along K at which no element exists are left out.

use super::super::elements::each_index;
use super::super::region::Emitter;
use super::contraction::TileProduct;
use super::factor::{Factor, Strided};
use super::keep::PackedA;
use super::plan::{OrderOfA, Plan};
use super::{Factors, Needed};
use crate::cpu::memory::buffer::Buffer;
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use tile_ir::ValueId;
use tile_ir::kernel::OpData;

/// Lines of a matrix that are copied.
struct CopiedLines<'c> {
    /// The matrix's.
    extents: [i64; 2],
    /// How many lines.
    count: IntValue<'c>,
    /// Where they end.
    end: IntValue<'c>,
    /// Lines of which the elements at one place come side by side.
    group: i64,
    /// Places of all lines that come before the places behind them; all places of a line at once without.
    strip: Option<i64>,
    /// Elements of a line that are copied at once.
    lanes: i64,
}

/// What is packed of a product's factors at a time, behind what is packed already.
struct Piece<'p, 'c> {
    plan: &'p Plan,
    /// The number of the matrix.
    matrix: IntValue<'c>,
    /// How deep what is packed already is.
    at: IntValue<'c>,
    /// How deep this is.
    depth: IntValue<'c>,
    /// Rows of `a` and columns of `b`.
    needed: Needed<'c>,
}

/// A matrix of a factor that is computed element by element.
struct ComputedMatrix<'c> {
    /// Its number.
    matrix: IntValue<'c>,
    rows: i64,
    columns: i64,
    /// Elements of the pieces in which its rows are packed.
    width: i64,
}

/// Emits what packs a factor, for where it isn't packed already; `None` where it never is.
fn unless_there<'c>(ir: &Ir<'c>, is_there: Option<IntValue<'c>>, pack: impl FnOnce()) {
    match is_there {
        Some(is_there) => ir.unless(is_there, pack),
        None => pack(),
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Packs the factors of the matrix of a number behind what is packed already, which is `at` elements deep; gives how much
    /// deeper it is then.
    pub(super) fn pack(
        &mut self,
        data: &'a OpData,
        plan: &Plan,
        matrix: IntValue<'c>,
        at: IntValue<'c>,
        Factors { a: packed_a, b: packed_b, needed }: Factors<'_, 'c>,
    ) -> IntValue<'c> {
        let (a, b) =
            (self.factor(data.operands[0], matrix, plan), self.factor(data.operands[1], matrix, plan));
        let depth = self.depth_of(&a, &b, plan);
        let (ir, piece) = (self.ir, Piece { plan, matrix, at, depth, needed });
        if let Some(PackedA { buffer, is_there }) = packed_a {
            unless_there(ir, *is_there, || self.pack_a(&a, &piece, buffer));
        }
        unless_there(ir, packed_b.is_there, || self.pack_b(&b, &piece, &packed_b.buffer));
        depth
    }

    /// How deep a product is: as far as one of the factors has elements, where both have zeros behind, in whole turns of the
    /// register blocks' loop where a product has such.
    pub(super) fn depth_of(&self, a: &Factor<'c>, b: &Factor<'c>, plan: &Plan) -> IntValue<'c> {
        let ir = self.ir;
        let ends = |factor: &Factor<'c>, axis: usize| match factor {
            Factor::Strided(Strided { valid: Some(valid), is_padded_with_zero: true, .. }) => {
                Some(valid[axis])
            }
            _ => None,
        };
        let at_once = plan.contraction.group() * if plan.has_whole_turns() { plan.block.steps } else { 1 };
        match (ends(a, 1), ends(b, 0)) {
            (Some(a), Some(b)) => {
                let depth = ir.greater(a, b);
                ir.mul(ir.udiv(ir.add(depth, ir.i64(at_once - 1)), ir.i64(at_once)), ir.i64(at_once))
            }
            _ => ir.i64(plan.k),
        }
    }

    fn pack_a(&mut self, a: &Factor<'c>, piece: &Piece<'_, 'c>, to: &Buffer<'c>) {
        let (ir, rows) = (self.ir, piece.needed.rows);
        let &Piece { plan, matrix, at, depth, .. } = piece;
        let group = ir.i64(plan.contraction.group());
        match a {
            Factor::Strided(from) if from.contiguous == 1 => {
                let [row, _] = plan.strides_of_a(OrderOfA::ByRows);
                let lanes = plan.contraction.tiles().map_or(plan.block.lanes, TileProduct::depth);
                let extents = [plan.m, plan.k];
                let lines = CopiedLines { extents, count: rows, end: depth, group: 1, strip: None, lanes };
                self.copy_lines(from, plan, &lines, &mut |emitter, i, p, vector| {
                    let position = ir.add(ir.mul(i, ir.i64(row)), ir.add(at, p));
                    emitter.buffers.store_as(to, position, emitter.as_left(plan, vector.into()));
                });
            }
            Factor::Strided(from) if plan.contraction.tiles().is_some() => {
                let [row, _] = plan.strides_of_a(OrderOfA::ByRows);
                self.transpose_lines(from, plan, rows, depth, &mut |emitter, i, p, line| {
                    let position = ir.add(ir.mul(i, ir.i64(row)), ir.add(at, p));
                    emitter.buffers.store_as(to, position, line.into());
                });
            }
            Factor::Strided(from) => {
                let [_, column] = plan.strides_of_a(OrderOfA::ByColumns);
                let (extents, group_size) = ([plan.m, plan.k], plan.contraction.group());
                let lanes = plan.block.lanes;
                let lines =
                    CopiedLines { extents, count: depth, end: rows, group: group_size, strip: None, lanes };
                self.copy_lines(from, plan, &lines, &mut |emitter, p, i, vector| {
                    let line = ir.mul(ir.udiv(ir.add(at, p), group), ir.i64(column));
                    let position = ir.add(line, ir.mul(i, group));
                    emitter.buffers.store_as(to, position, emitter.as_left(plan, vector.into()));
                });
            }
            Factor::Computed(value) => {
                let [row, _] = plan.strides_of_a(OrderOfA::ByRows);
                let computed = ComputedMatrix { matrix, rows: plan.m, columns: plan.k, width: plan.k };
                self.pack_computed(*value, plan, &computed, &mut |emitter, [i, _, p], element| {
                    let position = ir.add(ir.mul(i, ir.i64(row)), ir.add(at, p));
                    emitter.buffers.store(to, position, emitter.as_left(plan, element));
                });
            }
        }
    }

    fn pack_b(&mut self, b: &Factor<'c>, piece: &Piece<'_, 'c>, to: &Buffer<'c>) {
        let (ir, columns) = (self.ir, piece.needed.columns);
        let &Piece { plan, matrix, at, depth, .. } = piece;
        let (width, group) = (plan.block.width(), plan.contraction.group());
        let place = |p: IntValue<'c>, j: IntValue<'c>| plan.place_of_b(ir, [ir.add(at, p), j]);
        match b {
            Factor::Strided(from) if from.contiguous == 1 => {
                let lines = CopiedLines {
                    extents: [plan.k, plan.n],
                    count: depth,
                    end: columns,
                    group,
                    strip: Some(width),
                    lanes: plan.block.lanes,
                };
                self.copy_lines(from, plan, &lines, &mut |emitter, p, j, vector| {
                    emitter.buffers.store_as(to, place(p, j), vector.into());
                });
            }
            Factor::Strided(from) => {
                self.transpose_squares(from, plan, depth, columns, &mut |emitter, p, j, row| {
                    emitter.buffers.store_as(to, place(p, j), row.into());
                })
            }
            Factor::Computed(value) => {
                let computed = ComputedMatrix { matrix, rows: plan.k, columns: plan.n, width };
                self.pack_computed(*value, plan, &computed, &mut |emitter, [p, number, j], element| {
                    let within = ir.urem(ir.add(at, p), ir.i64(group));
                    let column = ir.add(ir.mul(number, ir.i64(width)), j);
                    let position = ir.add(place(p, column), within);
                    emitter.buffers.store(to, position, element);
                });
            }
        }
    }

    /// Gives lines along the contiguous axis of a matrix, vector by vector: the line, the place in it, and the vector. The
    /// last vector of a line may go beyond the matrix.
    fn copy_lines(
        &mut self,
        from: &Strided<'c>,
        plan: &Plan,
        lines: &CopiedLines<'c>,
        give: &mut dyn FnMut(&mut Self, IntValue<'c>, IntValue<'c>, VectorValue<'c>),
    ) {
        let &CopiedLines { extents, count, end: last, group, strip, lanes } = lines;
        let (ir, width) = (self.ir, extents[from.contiguous]);
        let index = |line, place| if from.contiguous == 1 { [line, place] } else { [place, line] };
        let ends = from.valid.map(|valid| [valid[1 - from.contiguous], valid[from.contiguous]]);
        let masked = |line: IntValue<'c>, place: IntValue<'c>| {
            let end = match ends {
                Some([lines, end]) => ir.select_int(ir.icmp(IntPredicate::ULT, line, lines), end, ir.i64(0)),
                None => ir.i64(width),
            };
            ir.lanes_below(ir.up_to(place, end), lanes as u32)
        };
        let is_all_there = from.valid.map(|_| self.is_all_there(from, extents));
        let mut copy = |first: IntValue<'c>, place: IntValue<'c>, is_masked: bool| {
            let vectors = (0..group).map(|i| {
                let line = ir.add(first, ir.i64(i));
                let address = self.address_in(from, index(line, place));
                let mask = is_masked.then(|| masked(line, place));
                self.packed_vector(from, address, mask, lanes as u32, plan)
            });
            let vectors: Vec<VectorValue<'c>> = vectors.collect();
            give(self, first, place, ir.interleaved(vectors));
        };
        let zero = ir.i64(0);
        let mut lines = |is_whole: bool| match strip {
            Some(strip) => ir.each((zero, last, ir.i64(strip)), LoopHint::Rolled, |start| {
                ir.each((zero, count, ir.i64(group)), LoopHint::Rolled, |line| {
                    for vector in 0..strip / lanes {
                        copy(line, ir.add(start, ir.i64(vector * lanes)), !is_whole || width % strip != 0);
                    }
                });
            }),
            None => ir.each((zero, count, ir.i64(group)), LoopHint::Rolled, |line| {
                ir.each((zero, last, ir.i64(lanes)), LoopHint::Rolled, |place| {
                    copy(line, place, !is_whole || width % lanes != 0);
                });
            }),
        };
        match is_all_there {
            Some(is_all_there) => ir.on_each_side(is_all_there, lines),
            None => lines(true),
        }
    }

    /// Gives the rows of a matrix whose columns are contiguous: squares of it are read column by column and transposed.
    /// The last square goes beyond the matrix.
    fn transpose_squares(
        &mut self,
        from: &Strided<'c>,
        plan: &Plan,
        rows: IntValue<'c>,
        columns: IntValue<'c>,
        give: &mut dyn FnMut(&mut Self, IntValue<'c>, IntValue<'c>, VectorValue<'c>),
    ) {
        let (ir, side, group) = (self.ir, plan.block.lanes, plan.contraction.group());
        let [end_of_rows, end_of_columns] = from.valid.unwrap_or([ir.i64(plan.k), ir.i64(plan.n)]);
        let is_whole = from.valid.is_none() && plan.k % (side * group) == 0 && plan.n % side == 0;
        let words = ir.int_type(plan.packed.bits() * group as u32).vec_type(side as u32);
        ir.each((ir.i64(0), columns, ir.i64(side)), LoopHint::Rolled, |column| {
            ir.each((ir.i64(0), rows, ir.i64(side * group)), LoopHint::Rolled, |row| {
                let rest = ir.up_to(row, end_of_rows);
                let square = (0..side).map(|i| {
                    let j = ir.add(column, ir.i64(i));
                    let there = ir.icmp(IntPredicate::ULT, j, end_of_columns);
                    let lanes = (side * group) as u32;
                    let mask =
                        (!is_whole).then(|| ir.lanes_below(ir.select_int(there, rest, ir.i64(0)), lanes));
                    let address = self.address_in(from, [row, j]);
                    let line = self.packed_vector(from, address, mask, lanes, plan);
                    if group == 1 { line } else { ir.vector_of_bits(line, words) }
                });
                let square: Vec<VectorValue<'c>> = square.collect();
                for (i, line) in ir.transposed(square).into_iter().enumerate() {
                    give(self, ir.add(row, ir.i64(i as i64 * group)), column, line);
                }
            });
        });
    }

    /// Gives pieces of the rows of a matrix whose rows are contiguous across, as deep as a tile: the row, the place along K, and
    /// the piece. What lines of neighbours have of as many rows is interleaved as it is multiplied, and transposed. The last
    /// rows and pieces go beyond the matrix.
    fn transpose_lines(
        &mut self,
        from: &Strided<'c>,
        plan: &Plan,
        rows: IntValue<'c>,
        depth: IntValue<'c>,
        give: &mut dyn FnMut(&mut Self, IntValue<'c>, IntValue<'c>, VectorValue<'c>),
    ) {
        let (ir, side, group) = (self.ir, plan.block.lanes, plan.contraction.group());
        let [end_of_rows, end_of_depth] = from.valid.unwrap_or([ir.i64(plan.m), ir.i64(plan.k)]);
        let is_whole = from.valid.is_none() && plan.m % side == 0 && plan.k % (side * group) == 0;
        let words = ir.int_type(plan.packed.bits() * group as u32).vec_type(side as u32);
        let pieces = ir.int_type(plan.packed.bits()).vec_type((side * group) as u32);
        ir.each((ir.i64(0), depth, ir.i64(side * group)), LoopHint::Rolled, |p| {
            ir.each((ir.i64(0), rows, ir.i64(side)), LoopHint::Rolled, |i| {
                let rest = ir.up_to(i, end_of_rows);
                let line = |number: i64| {
                    let p = ir.add(p, ir.i64(number));
                    let there = ir.icmp(IntPredicate::ULT, p, end_of_depth);
                    let count = ir.select_int(there, rest, ir.i64(0));
                    let mask = (!is_whole).then(|| ir.lanes_below(count, side as u32));
                    self.packed_vector(from, self.address_in(from, [i, p]), mask, side as u32, plan)
                };
                let joined = |word: i64| (0..group).map(|further| line(word * group + further)).collect();
                let square = (0..side).map(|word| ir.vector_of_bits(ir.interleaved(joined(word)), words));
                for (row, piece) in ir.transposed(square.collect()).into_iter().enumerate() {
                    give(self, ir.add(i, ir.i64(row as i64)), p, ir.vector_of_bits(piece, pieces));
                }
            });
        });
    }

    /// Gives the packed elements of a computed matrix, row by row: the row, the number of a piece of it, and the place in that.
    fn pack_computed(
        &mut self,
        value: ValueId,
        plan: &Plan,
        &ComputedMatrix { matrix, rows, columns, width }: &ComputedMatrix<'c>,
        give: &mut dyn FnMut(&mut Self, [IntValue<'c>; 3], Value<'c>),
    ) {
        let ir = self.ir;
        let shape = self.shape(value);
        let batch: Vec<_> = shape[..shape.len() - 2].iter().map(|&extent| ir.i64(extent)).collect();
        let before = if batch.is_empty() { Vec::new() } else { ir.delinearize(matrix, &batch) };
        let (pieces, rest) = (columns / width, columns % width);
        self.with_streams(&self.fusion.streams(&[value]), &[], &mut |emitter, _| {
            let mut piece = |row: IntValue<'c>, piece: IntValue<'c>, width_of_piece: i64| {
                each_index(ir, ir.i64(width_of_piece), width_of_piece, |place| {
                    let column = ir.add(ir.mul(piece, ir.i64(width)), place);
                    let index = [before.as_slice(), &[row, column]].concat();
                    let element = emitter.packed_element(value, &index, plan);
                    give(emitter, [row, piece, place], element);
                });
            };
            each_index(ir, ir.i64(rows), rows, |row| {
                if pieces > 0 {
                    each_index(ir, ir.i64(pieces), pieces, |number| piece(row, number, width));
                }
                if rest > 0 {
                    piece(row, ir.i64(pieces), rest);
                }
            });
        });
    }
}
