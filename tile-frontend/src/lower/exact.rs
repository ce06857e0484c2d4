//! Integers that are extents converted to another format, where no number is lost: `N.ilog2()`, which is a `u32`, and
//! `-(R as i32)`.

use super::Lowering;
use crate::value::Val;
use tile_ir::dim::Atom;
use tile_ir::ops::{BinaryOp, Literal, Predicate, UnaryOp};
use tile_ir::{DType, Dim, Elem, Op, ValueId};

impl Lowering {
    /// The extent that an integer is equal to, whatever its format, in every instance and launch that the kernel's conditions
    /// let run; it may be below zero. `None` where that isn't known.
    pub(super) fn exact(&self, value: &Val) -> Option<Dim> {
        match value {
            Val::Int(int) => i64::try_from(int.value).ok().map(Dim::from),
            Val::Dim(dim) => self.within(dim.clone(), DType::Index),
            Val::Data(value) => self.computed(*value, &|dim, dtype| self.within(dim, dtype)),
            _ => None,
        }
    }

    /// The number that an integer is in every instance, of const parameters alone; it may be below zero. That `R as i32` is
    /// `R` is taken for granted: of more than 2³¹ elements no tile is.
    pub(super) fn static_number(&self, value: ValueId) -> Option<Dim> {
        let number = self.computed(value, &|dim, dtype| match dtype {
            DType::Index | DType::I32 | DType::I64 => Some(dim),
            narrow => self.within(dim, narrow),
        });
        number.filter(Dim::is_static)
    }

    /// The extent that an integer is computed to be, if each step is known to be one: `known` tells of an extent in a format.
    fn computed(&self, value: ValueId, known: &dyn Fn(Dim, DType) -> Option<Dim>) -> Option<Dim> {
        let data = self.kernel.definition(value)?;
        let operand = |at: usize| self.computed(data.operands[at], known);
        let part = |at: usize| operand(at).filter(|dim| self.has_its_logarithms(dim));
        let dim = match &data.op {
            Op::Constant { value: Literal::Int(number), .. } => Dim::from(i64::try_from(*number).ok()?),
            Op::Extent(dim) => dim.clone(),
            Op::Cast(_) => operand(0)?,
            Op::Unary(UnaryOp::Neg) => -operand(0)?,
            Op::Binary(BinaryOp::Add) => part(0)? + part(1)?,
            Op::Binary(BinaryOp::Sub) => part(0)? - part(1)?,
            Op::Binary(BinaryOp::Mul) => part(0)? * part(1)?,
            _ => return None,
        };
        match self.elem(value) {
            Elem::Known(dtype) => known(dim, dtype),
            Elem::Param(_) => None,
        }
    }

    /// Whether the logarithms in an extent are those of numbers that are known to be positive, so that it may be part of a larger
    /// one. Of another number the logarithm is 0 as an op, and as an extent it makes the whole of that 0.
    pub(super) fn has_its_logarithms(&self, dim: &Dim) -> bool {
        let of_others = |atom: &Atom| atom.operands().all(|operand| self.has_its_logarithms(operand));
        dim.terms().flat_map(|(factors, _)| factors).all(|atom| match atom {
            Atom::Ilog2(number) => self.is_positive(number) && of_others(atom),
            atom => of_others(atom),
        })
    }

    /// Whether an extent is known to be positive, as a power of two is.
    fn is_positive(&self, dim: &Dim) -> bool {
        let least = self.facts.interval(&self.facts.apply(dim)).map(|(least, _)| least);
        let mut known = self.kernel.conditions.iter().flat_map(|condition| condition.formula.assured());
        least.is_some_and(|least| least >= 1)
            || known.any(|comparison| {
                comparison.predicate == Predicate::Eq
                    && comparison.right == *dim
                    && comparison.left == dim.next_power_of_two()
            })
    }

    /// The extent, if it is known to be one of a format's integers.
    fn within(&self, dim: Dim, dtype: DType) -> Option<Dim> {
        let (least, most) = match dtype {
            DType::Index => (0, i128::from(i64::MAX)),
            dtype if dtype.is_int() => dtype.int_range(),
            _ => return None,
        };
        let (low, high) = self.facts.interval(&self.facts.apply(&dim))?;
        (least <= low && high <= most).then_some(dim)
    }
}
