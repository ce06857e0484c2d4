//! Arithmetic of movement ops' index maps on positions that emitted code computes.

use super::ir::Ir;
use inkwell::IntPredicate;
use inkwell::types::IntType;
use inkwell::values::IntValue;
use tile_ir::ops::movement::{IndexMath, Piece};

/// Positions as integers of one LLVM type.
pub(crate) struct Positions<'a, 'c> {
    pub(crate) ir: &'a Ir<'c>,
    pub(crate) ty: IntType<'c>,
}

impl<'c> Positions<'_, 'c> {
    pub(crate) fn number(&self, value: usize) -> IntValue<'c> {
        self.ty.const_int(value as u64, false)
    }

    /// The row-major number of an index in a tile of this shape.
    pub(crate) fn linear(&self, index: &[IntValue<'c>], shape: &[usize]) -> IntValue<'c> {
        let axes = index.iter().zip(shape).filter(|&(_, &extent)| extent > 1);
        let position = axes.fold(None, |outer: Option<IntValue<'c>>, (&i, &extent)| {
            Some(outer.map_or(i, |outer| self.ir.add(self.ir.mul(outer, self.number(extent)), i)))
        });
        position.unwrap_or_else(|| self.number(0))
    }

    /// An index of the result as one in the piece's box; outside it, some axis isn't below the box's extent.
    pub(crate) fn in_box(&self, piece: &Piece, index: &[IntValue<'c>]) -> Vec<IntValue<'c>> {
        let axes = index.iter().zip(&piece.start);
        axes.map(|(&i, &start)| if start == 0 { i } else { self.ir.sub(i, self.number(start)) }).collect()
    }

    /// Whether what [`Self::in_box`] gave, for a result of this shape, is in the box; `None` if always.
    pub(crate) fn is_inside(
        &self,
        piece: &Piece,
        index: &[IntValue<'c>],
        shape: &[usize],
    ) -> Option<IntValue<'c>> {
        let axes = (0..shape.len()).filter(|&axis| piece.extents[axis] < shape[axis]);
        let tests =
            axes.map(|axis| self.ir.icmp(IntPredicate::ULT, index[axis], self.number(piece.extents[axis])));
        tests.reduce(|a, b| self.ir.and(a, b))
    }
}

impl<'c> IndexMath for Positions<'_, 'c> {
    type Int = IntValue<'c>;

    fn zero(&self) -> IntValue<'c> {
        self.number(0)
    }

    fn plus(&self, a: IntValue<'c>, b: usize) -> IntValue<'c> {
        self.ir.add(a, self.number(b))
    }

    fn mirrored(&self, a: usize, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.sub(self.number(a), b)
    }

    fn modulo(&self, a: IntValue<'c>, b: usize) -> IntValue<'c> {
        if b == 1 { self.zero() } else { self.ir.urem(a, self.number(b)) }
    }
}
