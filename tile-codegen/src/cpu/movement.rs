//! Ops that move elements. One that is a single piece is computed by element, in its consumer's loop where
//! [`super::fuse`] says so; another is written to its buffer piece by piece, in one loop nest each. Gather is
//! computed by element, scatter writes its buffer in the order of the indices.

use super::buffer::Buffers;
use super::region::Emitter;
use crate::emit::Value;
use crate::emit::positions::Positions;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::ops::ScatterMode;
use tile_ir::ops::movement::Piece;
use tile_ir::{ValueId, ops::BinaryOp};

impl<'a, 'c> Emitter<'a, 'c> {
    fn positions(&self) -> Positions<'a, 'c> {
        Positions { ir: self.ir, ty: self.ir.context.i64_type() }
    }

    /// Extents of a tile; none of a scalar.
    fn extents_of(&self, value: ValueId) -> Vec<usize> {
        if !self.is_tile(value) {
            return Vec::new();
        }
        self.shape(value).iter().map(|&extent| extent as usize).collect()
    }

    fn pieces(&self, data: &OpData) -> Vec<Piece> {
        let shapes: Vec<Vec<usize>> = data.operands.iter().map(|&value| self.extents_of(value)).collect();
        let pieces = data.op.pieces(&shapes, &self.extents_of(data.results[0]));
        pieces.expect("an op that moves elements")
    }

    /// Element `index` of what a single piece gives.
    pub(super) fn moved_element(&mut self, data: &'a OpData, index: &[IntValue<'c>]) -> Value<'c> {
        let pieces = self.pieces(data);
        let [piece] = pieces.as_slice() else { unreachable!("an op of several pieces is stored") };
        let source = piece.source(&self.positions(), index);
        self.element(data.operands[piece.operand], &source)
    }

    /// Writes the result's buffer, piece by piece. A tile whose place the result has taken over is there already.
    pub(super) fn movement(&mut self, data: &'a OpData) {
        let result = self.stored(data.results[0]);
        let (shape, positions) = (self.shape(data.results[0]), self.positions());
        for piece in self.pieces(data) {
            let operand = data.operands[piece.operand];
            if self.buffer(operand).is_some_and(|source| Buffers::same(&source, &result)) {
                continue;
            }
            let extents: Vec<i64> = piece.extents.iter().map(|&extent| extent as i64).collect();
            self.nest(&extents, &mut |emitter, index| {
                let value = emitter.element(operand, &piece.source(&positions, index));
                let starts = index.iter().zip(&piece.start);
                let to: Vec<_> =
                    starts.map(|(&i, &start)| emitter.ir.add(i, positions.number(start))).collect();
                let position = emitter.position(&to, &shape);
                emitter.buffers.store(&result, position, value);
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
