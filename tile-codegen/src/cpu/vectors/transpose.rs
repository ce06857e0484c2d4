//! Transposition by permutations that turn columns into rows, in square blocks with as many elements a side as a vector
//! has: of tiles in scratch memory, and directly from tensor to tensor if a kernel does nothing else with a tile.
//!
//! Element by element, either the reads or the writes would go across rows and use one element of each line. A block is
//! read by rows, transposed in registers, and written by rows.

use super::vector_type;
use crate::cpu::LINE_BYTES;
use crate::cpu::elements::IndexRange;
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::parts::{Bounds, Existing};
use crate::cpu::memory::pieces::{STRIP_LINES, TransposedAhead};
use crate::cpu::memory::scratch::element_bytes;
use crate::cpu::memory::stores::StoredTile;
use crate::cpu::memory::views::Window;
use crate::cpu::region::Emitter;
use crate::emit::{Ir, LoopHint};
use inkwell::IntPredicate;
use inkwell::values::{BasicValue, IntValue, PointerValue, VectorValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, Instance, Op, ValueId};

/// Elements along a side of the largest block: those of a vector of 512 bits, and of a shorter one where they are narrow, so
/// that registers hold the block.
fn largest_side(dtype: DType) -> i64 {
    if element_bytes(dtype) == 8 { 8 } else { 16 }
}

/// The axis of a permutation's result that the operand's rows lie along, where that isn't the result's own last axis and
/// there are blocks.
pub(in crate::cpu) fn transposed_axis(instance: &Instance, data: &OpData) -> Option<usize> {
    let Op::Permute(permutation) = &data.op else { return None };
    let ty = instance.ty(data.results[0]).as_tile().expect("verified: a tile");
    let shape = crate::cpu::region::extents(&ty.shape);
    let (last, side) = (shape.len() - 1, largest_side(ty.elem.known()?));
    let axis = permutation.iter().position(|&from| from == last)?;
    (axis != last && shape[axis] >= side && shape[last] >= side).then_some(axis)
}

/// Elements from one index to the next, per axis of a stored tile.
fn strides(shape: &[i64]) -> Vec<i64> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

/// One permutation: positions are in elements of the tiles.
struct Transposition<'c> {
    source: Buffer<'c>,
    result: Buffer<'c>,
    /// Elements of the source from one to the next along the result's rows.
    source_stride: i64,
    /// Elements of the result from one to the next along the source's rows.
    result_stride: i64,
}

/// A matrix of a tile in its tensor, where its first element is in the tile, and the axis along which its rows lie below each
/// other.
#[derive(Clone, Copy)]
struct RowsBelow<'w, 'c> {
    window: &'w Window<'c>,
    first: &'w [IntValue<'c>],
    axis: usize,
}

/// What there is of a matrix.
struct ValidRows<'c> {
    /// Whether the tensor has its place along the other axes.
    exists: IntValue<'c>,
    rows: IntValue<'c>,
    columns: IntValue<'c>,
}

impl<'c> RowsBelow<'_, 'c> {
    /// What the tensor has of it; `None` where places before the first may be missing.
    fn valid(&self, ir: &Ir<'c>) -> Option<ValidRows<'c>> {
        let valid = self.window.valid()?;
        let last = valid.len() - 1;
        let others = (0..last).filter(|&other| other != self.axis);
        let exists = ir.all(others.map(|axis| ir.icmp(IntPredicate::ULT, self.first[axis], valid[axis])));
        Some(ValidRows { exists, rows: valid[self.axis], columns: valid[last] })
    }
}

/// Rows of a source that are columns of a result, both in tensors.
struct InTensors<'c> {
    /// The first elements.
    from: [PointerValue<'c>; 2],
    /// Elements of the source from one to the next along the result's rows, and the other way round.
    strides: [IntValue<'c>; 2],
    tensors: [ValueId; 2],
    dtype: DType,
    /// Rows of the result that are transposed together, each a cache line.
    side: i64,
}

impl<'c> InTensors<'c> {
    /// The address of an element of the source (0) or the result (1): of which row there, and where in it.
    fn address(&self, ir: &Ir<'c>, which: usize, [row, place]: [IntValue<'c>; 2]) -> PointerValue<'c> {
        let position = ir.add(ir.mul(row, self.strides[which]), place);
        ir.element(ir.storage_type(self.dtype), self.from[which], position)
    }

    /// Asks for what lies so many elements further along the source's rows than the block from this row and column of the
    /// result on, which reads so many rows. There may be nothing.
    fn ask_beside(&self, ir: &Ir<'c>, further: i64, [row, column]: [IntValue<'c>; 2], columns: i64) {
        let bytes = ir.i64(further * self.dtype.bytes() as i64);
        for i in 0..columns {
            let own = self.address(ir, 0, [ir.add(column, ir.i64(i)), row]);
            ir.prefetch_for_later(ir.bytes_further(own, bytes));
        }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Elements along a side of a block, whose rows are of elements of so many bytes: the largest that registers hold.
    pub(in crate::cpu) fn side(&self, dtype: DType, bytes: i64) -> i64 {
        largest_side(dtype).min(self.processor.vector_bytes() / bytes)
    }

    /// The same of a tile in scratch memory.
    fn side_in_scratch(&self, dtype: DType) -> i64 {
        self.side(dtype, element_bytes(dtype) as i64)
    }

    /// Writes the buffer of a permutation's result, along whose `axis` the rows of the stored operand lie.
    pub(in crate::cpu) fn transpose(&mut self, data: &'a OpData, axis: usize) {
        let Op::Permute(permutation) = &data.op else { unreachable!("only permutations transpose") };
        let (from, to) = (self.shape(data.operands[0]), self.shape(data.results[0]));
        let last = to.len() - 1;
        let (source_strides, result_strides) = (strides(&from), strides(&to));
        let transposition = Transposition {
            source: self.stored(data.operands[0]),
            result: self.stored(data.results[0]),
            source_stride: source_strides[permutation[last]],
            result_stride: result_strides[axis],
        };
        let extents = [to[axis], to[last]];
        let mut others = to.clone();
        (others[axis], others[last]) = (1, 1);
        self.each_row(&others, &mut |emitter, index| {
            let ir = emitter.ir;
            let strides = permutation.iter().map(|&axis| source_strides[axis]);
            let from = index
                .iter()
                .zip(strides)
                .fold(ir.i64(0), |sum, (&i, stride)| ir.add(sum, ir.mul(i, ir.i64(stride))));
            let to = emitter.position(index, &to);
            emitter.transpose_matrix(&transposition, extents, [from, to]);
        });
    }

    /// Transposes one matrix of `rows` rows of the result, whose first elements are at `from` and `to`: blocks, and element by
    /// element what is left at two edges.
    fn transpose_matrix(
        &mut self,
        transposition: &Transposition<'c>,
        [rows, columns]: [i64; 2],
        [from, to]: [IntValue<'c>; 2],
    ) {
        let (ir, side) = (self.ir, self.side_in_scratch(transposition.source.dtype));
        let places = |row: IntValue<'c>, column: IntValue<'c>| {
            let source = ir.add(row, ir.mul(column, ir.i64(transposition.source_stride)));
            let result = ir.add(column, ir.mul(row, ir.i64(transposition.result_stride)));
            [ir.add(from, source), ir.add(to, result)]
        };
        let [whole_rows, whole_columns] = [rows, columns].map(|extent| extent / side * side);
        self.each_row(&[whole_rows / side, whole_columns / side], &mut |emitter, block| {
            let corner = |i: usize| ir.mul(block[i], ir.i64(side));
            emitter.transpose_block(transposition, places(corner(0), corner(1)));
        });
        let mut edge = |[first_row, first_column]: [i64; 2], extents: [i64; 2]| {
            self.nest(&extents, &mut |emitter, index| {
                let row = ir.add(index[0], ir.i64(first_row));
                let [source, result] = places(row, ir.add(index[1], ir.i64(first_column)));
                let element = emitter.buffers.load(&transposition.source, source);
                emitter.buffers.store(&transposition.result, result, element);
            });
        };
        if whole_columns < columns {
            edge([0, whole_columns], [rows, columns - whole_columns]);
        }
        if whole_rows < rows {
            edge([whole_rows, 0], [rows - whole_rows, whole_columns]);
        }
    }

    fn transpose_block(&self, transposition: &Transposition<'c>, [from, to]: [IntValue<'c>; 2]) {
        let (ir, side) = (self.ir, self.side_in_scratch(transposition.source.dtype));
        let ty = vector_type(self.buffers.element_type(transposition.source.dtype), side as u32).into();
        let row = |first, stride, i| ir.add(first, ir.i64(i * stride));
        let rows = (0..side).map(|i| {
            let place = row(from, transposition.source_stride, i);
            self.buffers.load_as(&transposition.source, ty, place).into_vector_value()
        });
        for (i, column) in (0..).zip(ir.transposed(rows.collect())) {
            self.buffers.store_as(
                &transposition.result,
                row(to, transposition.result_stride, i),
                column.into(),
            );
        }
    }

    /// Stores a tile whose rows are the columns of a loaded one, from tensor to tensor, matrix by matrix: blocks of whole cache
    /// lines of the result, and element by element what is left at the edges.
    pub(in crate::cpu) fn store_transposed(&mut self, to: &Window<'c>, value: ValueId, load: &'a OpData) {
        let from = self.window_of(load);
        self.open_stream(load, &from, Bounds::Checked);
        let data = self.definition(value).expect("a transposed tile is a permutation's result");
        let Op::Permute(permutation) = &data.op else { unreachable!("only permutations transpose") };
        let axis = transposed_axis(self.instance, data).expect("asked before");
        let mut matrices = to.shape().to_vec();
        let last = matrices.len() - 1;
        (matrices[axis], matrices[last]) = (1, 1);
        let is_one = matrices.iter().all(|&extent| extent == 1);
        let ahead = if is_one { self.ahead_of_transposed(load, to, axis) } else { None };
        let tile = [StoredTile { window: to.clone(), value }];
        self.each_row(&matrices, &mut |emitter, matrix| {
            let mut there = vec![emitter.ir.i64(0); matrix.len()];
            permutation.iter().zip(matrix).for_each(|(&axis, &i)| there[axis] = i);
            let from = RowsBelow { window: &from, first: &there, axis: permutation[last] };
            let to = RowsBelow { window: to, first: matrix, axis };
            let blocks = emitter.transpose_matrix_in_tensors(from, to, ahead.as_ref());
            emitter.store_edges(&tile, to, blocks);
        });
    }

    /// Transposes the blocks of a matrix that lie whole in both tensors; gives how many rows and columns of the result those are.
    fn transpose_matrix_in_tensors(
        &mut self,
        from: RowsBelow<'_, 'c>,
        to: RowsBelow<'_, 'c>,
        ahead: Option<&TransposedAhead<'c>>,
    ) -> [IntValue<'c>; 2] {
        let (ir, zero) = (self.ir, self.ir.i64(0));
        let (Some(there), Some(wanted)) = (from.valid(ir), to.valid(ir)) else { return [zero; 2] };
        let exists = ir.and(there.exists, wanted.exists);
        let rows = ir.lesser(there.columns, wanted.rows);
        let columns = ir.lesser(there.rows, wanted.columns);
        let extents = [rows, columns].map(|extent| ir.select_int(exists, extent, zero));
        self.transpose_in_lines(from, to, extents, ahead)
    }

    /// Stores what is left of a matrix, of which blocks of so many rows and columns are.
    fn store_edges(
        &mut self,
        tile: &[StoredTile<'c>],
        to: RowsBelow<'_, 'c>,
        [rows, columns]: [IntValue<'c>; 2],
    ) {
        let ir = self.ir;
        let shape = to.window.shape();
        let last = shape.len() - 1;
        let is_left = |transposed, extent| ir.icmp(IntPredicate::ULT, transposed, ir.i64(extent));
        let edges = ir.or(is_left(rows, shape[to.axis]), is_left(columns, shape[last]));
        ir.if_then(edges, || {
            self.each_row(&[shape[to.axis]], &mut |emitter, row| {
                let mut index = to.first[..last].to_vec();
                index[to.axis] = row[0];
                let Existing { begin, end } = emitter.existing(to.window, &index);
                let is_transposed = ir.icmp(IntPredicate::ULT, row[0], rows);
                let transposed = ir.select_int(is_transposed, columns, ir.i64(0));
                let begin = begin.map_or(transposed, |begin| ir.greater(begin, transposed));
                let some = ir.icmp(IntPredicate::ULT, begin, end);
                let places = Existing { begin: Some(begin), end: ir.select_int(some, end, begin) };
                emitter.store_elements(tile, &index, places);
            });
        });
    }

    /// Transposes the blocks of a matrix that lie whole in this many rows and columns of the result; gives how many rows and
    /// columns those are.
    fn transpose_in_lines(
        &mut self,
        from: RowsBelow<'_, 'c>,
        to: RowsBelow<'_, 'c>,
        [rows, columns]: [IntValue<'c>; 2],
        ahead: Option<&TransposedAhead<'c>>,
    ) -> [IntValue<'c>; 2] {
        let (ir, dtype) = (self.ir, to.window.dtype());
        let bytes = dtype.bytes() as i64;
        let (side, line) = (self.side(dtype, bytes), i64::from(LINE_BYTES) / bytes);
        let whole = |extent, by| ir.sub(extent, ir.urem(extent, ir.i64(by)));
        let [whole_rows, whole_columns] = [whole(rows, side), whole(columns, line)];
        let lines = InTensors {
            from: [from, to].map(|matrix| self.row_address(matrix.window, matrix.first)),
            strides: [from, to].map(|matrix| self.stride(matrix.window, matrix.axis)),
            tensors: [from, to].map(|matrix| matrix.window.tensor()),
            dtype,
            side,
        };
        let streams = self.entry.streamed.get(&lines.tensors[1]).map(|&flag| {
            let skipped = ir.line_offset(lines.from[1], LINE_BYTES.into());
            let apart = ir.urem(lines.strides[1], ir.i64(line));
            ir.and(flag, ir.icmp(IntPredicate::EQ, ir.or(skipped, apart), ir.i64(0)))
        });
        let zero = ir.i64(0);
        let strip = ir.i64(STRIP_LINES * line);
        ir.each((zero, whole_columns, strip), LoopHint::Rolled, |first| {
            let end = ir.lesser(ir.add(first, strip), whole_columns);
            ir.each((zero, whole_rows, ir.i64(side)), LoopHint::Rolled, |row| {
                ir.each((first, end, ir.i64(line)), LoopHint::Rolled, |column| {
                    match ahead {
                        Some(TransposedAhead::Pieces(pieces)) => {
                            let strip = IndexRange { start: first, end };
                            self.ask_for_pieces(pieces, lines.strides[0], strip, [row, column]);
                        }
                        Some(TransposedAhead::Beside) => {
                            lines.ask_beside(ir, to.window.shape()[to.axis], [row, column], line)
                        }
                        None => {}
                    }
                    self.transpose_line(&lines, [row, column], streams);
                });
            });
        });
        [whole_rows, whole_columns]
    }

    /// Transposes a block whose rows are cache lines of the result. All of a line is written at once, so that one that goes past
    /// the caches leaves whole.
    fn transpose_line(
        &self,
        lines: &InTensors<'c>,
        [row, column]: [IntValue<'c>; 2],
        streams: Option<IntValue<'c>>,
    ) {
        let (ir, line) = (self.ir, i64::from(LINE_BYTES) / lines.dtype.bytes() as i64);
        let square = |first: i64| {
            let columns = first..first + lines.side;
            ir.transposed(columns.map(|i| self.read_across(lines, [row, column], i)).collect())
        };
        let squares: Vec<_> = (0..line).step_by(lines.side as usize).map(square).collect();
        let rows = (0..lines.side as usize).map(|i| squares.iter().map(|square| square[i]).collect());
        let rows: Vec<_> = rows.map(|pieces| self.joined(pieces)).collect();
        let write = |streaming| self.write_rows(lines, [row, column], &rows, streaming);
        match streams {
            Some(streams) => ir.on_each_side(streams, write),
            None => write(false),
        }
    }

    /// Reads of a column of the result, so many behind this one, the elements of a block from this row on.
    fn read_across(
        &self,
        lines: &InTensors<'c>,
        [row, column]: [IntValue<'c>; 2],
        i: i64,
    ) -> VectorValue<'c> {
        let (ir, storage) = (self.ir, self.ir.storage_type(lines.dtype));
        let address = lines.address(ir, 0, [ir.add(column, ir.i64(i)), row]);
        let ty = vector_type(storage, lines.side as u32).into();
        let loaded = ir.load_at(ty, address, Some(lines.dtype.bytes() as u32));
        self.buffers.mark_tensor_access(loaded.as_instruction_value(), lines.tensors[0]);
        loaded.into_vector_value()
    }

    /// Writes lines of the result: past the caches, if they begin where the memory's do, or through them.
    fn write_rows(
        &self,
        lines: &InTensors<'c>,
        [row, column]: [IntValue<'c>; 2],
        rows: &[VectorValue<'c>],
        streaming: bool,
    ) {
        let ir = self.ir;
        let alignment = if streaming { LINE_BYTES } else { lines.dtype.bytes() as u32 };
        for (i, &elements) in (0..).zip(rows) {
            let address = lines.address(ir, 1, [ir.add(row, ir.i64(i)), column]);
            let store = ir.builder.build_store(address, elements).expect("the builder is positioned");
            store.set_alignment(alignment).expect("a power of two");
            self.buffers.mark_tensor_access(Some(store), lines.tensors[1]);
            if streaming {
                ir.mark_streaming(store);
            }
        }
    }

    /// Vectors one behind the other, a power of two of them.
    fn joined(&self, mut vectors: Vec<VectorValue<'c>>) -> VectorValue<'c> {
        while let [first, _, ..] = vectors.as_slice() {
            let places: Vec<u32> = (0..2 * first.get_type().get_size()).collect();
            vectors = vectors.chunks(2).map(|pair| self.ir.lanes_at(pair[0], pair[1], &places)).collect();
        }
        vectors[0]
    }
}
