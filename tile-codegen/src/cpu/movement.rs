//! Ops that move elements. An op whose result is a single piece is computed by element, in its consumer's loop if
//! [`super::fuse`] says so. Any other is written to its buffer, by one loop nest for each piece; or by a single nest for
//! all pieces if these alternate in short runs of memory, or are few and alike, so that what they are made of is read once. A
//! gather is computed by element; a scatter writes its buffer in the order of the indices.

use super::elements::is_short;
use super::memory::buffer::Buffers;
use super::region::{Emitter, extents};
use crate::emit::Value;
use crate::emit::positions::Positions;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::ops::movement::Piece;
use tile_ir::ops::{Movement, ScatterMode};
use tile_ir::{Instance, Op, ValueId, ops::BinaryOp};

impl<'a, 'c> Emitter<'a, 'c> {
    fn positions(&self) -> Positions<'a, 'c> {
        Positions { ir: self.ir, ty: self.ir.context.i64_type() }
    }

    /// Element `index` of what a single piece gives.
    pub(super) fn moved_element(&mut self, data: &'a OpData, index: &[IntValue<'c>]) -> Value<'c> {
        let pieces = pieces(self.instance, data).expect("an op that moves elements");
        let [piece] = pieces.as_slice() else { unreachable!("an op of several pieces is stored") };
        let source = piece.source(&self.positions(), index);
        self.element(data.operands[piece.operand], &source)
    }

    /// Writes the result's buffer, piece by piece. A tile whose place the result has taken over is there already.
    pub(super) fn movement(&mut self, data: &'a OpData) {
        let result = self.stored(data.results[0]);
        let (shape, positions) = (self.shape(data.results[0]), self.positions());
        let mut pieces = pieces(self.instance, data).expect("an op that moves elements");
        pieces.retain(|piece| {
            let source = self.buffer(data.operands[piece.operand]);
            !source.is_some_and(|source| Buffers::same(&source, &result))
        });
        let share_a_loop = if is_one_loop(self.instance, data) { are_beside } else { take_turns };
        for pieces in pieces.chunk_by(share_a_loop) {
            let extents: Vec<i64> = pieces[0].extents.iter().map(|&extent| extent as i64).collect();
            self.nest_of_part(&extents, &shape, &mut |emitter, index| {
                let element = |emitter: &mut Self, piece: &Piece| {
                    emitter.element(data.operands[piece.operand], &piece.source(&positions, index))
                };
                let values: Vec<Value<'c>> = emitter
                    .computing_once(|emitter| pieces.iter().map(|piece| element(emitter, piece)).collect());
                for (piece, value) in pieces.iter().zip(values) {
                    let starts = index.iter().zip(&piece.start);
                    let to: Vec<_> =
                        starts.map(|(&i, &start)| emitter.ir.add(i, positions.number(start))).collect();
                    let position = emitter.position(&to, &shape);
                    emitter.buffers.store(&result, position, value);
                }
            });
        }
    }

    /// An element of a tile of indices as an i64, and whether it is below `extent`.
    fn checked_index(
        &mut self,
        indices: ValueId,
        index: &[IntValue<'c>],
        extent: i64,
    ) -> (IntValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let signed = self.dtype(indices).is_signed();
        let wide = ir.resize(self.element(indices, index).into_int_value(), 64, signed);
        (wide, ir.icmp(IntPredicate::ULT, wide, ir.i64(extent)))
    }

    /// Element `index` of a gather.
    pub(super) fn gathered_element(
        &mut self,
        data: &'a OpData,
        axis: usize,
        index: &[IntValue<'c>],
    ) -> Value<'c> {
        let (ir, tile) = (self.ir, data.operands[0]);
        let extent = self.shape(tile)[axis];
        let (i, inside) = self.checked_index(data.operands[1], index, extent);
        let mut source = index.to_vec();
        source[axis] = ir.select_int(inside, i, ir.i64(0));
        let value = self.element(tile, &source);
        ir.select(inside, value, self.scalar(data.operands[2]))
    }

    /// Copies the tile, unless it is there already, and puts the values in.
    pub(super) fn scatter(&mut self, data: &'a OpData, axis: usize, mode: ScatterMode) {
        let &[tile, indices, values] = data.operands.as_slice() else {
            unreachable!("verified: a scatter has three operands")
        };
        let (result, shape) = (self.stored(data.results[0]), self.shape(tile));
        if !self.buffer(tile).is_some_and(|source| Buffers::same(&source, &result)) {
            self.fill(&result, &shape, |emitter, index| emitter.element(tile, index));
        }
        self.nest(&self.shape(indices), &mut |emitter, index| {
            let ir = emitter.ir;
            let (i, inside) = emitter.checked_index(indices, index, shape[axis]);
            let value = emitter.element(values, index);
            let mut to = index.to_vec();
            to[axis] = i;
            let position = emitter.position(&to, &shape);
            ir.if_then(inside, || {
                let value = match mode {
                    ScatterMode::Write => value,
                    ScatterMode::Add => {
                        let before = emitter.buffers.load(&result, position);
                        ir.binary(BinaryOp::Add, result.dtype, before, value)
                    }
                };
                emitter.buffers.store(&result, position, value);
            });
        });
    }
}

/// The pieces of what an op gives, if it moves elements.
fn pieces(instance: &Instance, data: &OpData) -> Option<Vec<Piece>> {
    let extents_of = |value: ValueId| -> Vec<usize> {
        let ty = instance.ty(value).as_tile();
        let extents = ty.map(|ty| extents(&ty.shape)).unwrap_or_default();
        extents.iter().map(|&extent| extent as usize).collect()
    };
    let shapes: Vec<Vec<usize>> = data.operands.iter().map(|&value| extents_of(value)).collect();
    data.op.pieces(&shapes, &extents_of(*data.results.first()?))
}

/// The most pieces that a loop writes if the elements of each follow each other in memory.
const MOST_RUNS: usize = 4;

/// Whether an op joins several pieces in one loop.
pub(super) fn is_one_loop(instance: &Instance, data: &OpData) -> bool {
    let is_cat = matches!(data.op, Op::Movement(Movement::Cat { .. }));
    let pieces = pieces(instance, data).filter(|_| is_cat).unwrap_or_default();
    let share_a_loop = if pieces.len() > MOST_RUNS { take_turns } else { are_beside };
    pieces.len() > 1 && pieces.windows(2).all(|pair| share_a_loop(&pair[0], &pair[1]))
}

/// Whether two boxes are alike and lie beside each other along one axis.
fn are_beside(a: &Piece, b: &Piece) -> bool {
    a.extents == b.extents && axes_apart(a, b).len() == 1
}

/// Whether such boxes have so few elements next to each other in memory that theirs take turns there.
fn take_turns(a: &Piece, b: &Piece) -> bool {
    let run = |axis: usize| a.extents[axis..].iter().product::<usize>();
    are_beside(a, b) && is_short(run(axes_apart(a, b)[0]) as i64)
}

fn axes_apart(a: &Piece, b: &Piece) -> Vec<usize> {
    (0..a.start.len()).filter(|&axis| a.start[axis] != b.start[axis]).collect()
}
