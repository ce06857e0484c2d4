//! Integers that are known when the macro expands, and conditions that follow from them.

use super::Lowering;
use crate::value::Val;
use tile_ir::ops::{BinaryOp, Literal, UnaryOp};
use tile_ir::{DType, Elem, Op, ValueId};

/// An integer that is known when the macro expands.
pub(super) fn known(value: &Val) -> Option<i128> {
    match value {
        Val::Int(int) => Some(int.value),
        Val::Dim(dim) => dim.as_const().map(i128::from),
        _ => None,
    }
}

/// What an op gives of integers that are known, before it wraps; `None` of an op that is computed when the kernel runs, and of
/// what has no value. `dtype` is their format, where that is decided.
pub(super) fn computed(op: BinaryOp, a: i128, b: i128, dtype: Option<DType>) -> Option<i128> {
    let saturated = |exact: Option<i128>| {
        let (least, greatest) = dtype.filter(|dtype| dtype.is_int())?.int_range();
        Some(exact?.clamp(least, greatest))
    };
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::SaturatingAdd => saturated(a.checked_add(b)),
        BinaryOp::SaturatingSub => saturated(a.checked_sub(b)),
        _ => None,
    }
}

impl Lowering {
    /// Whether a condition holds, where that is known when the macro expands.
    pub(super) fn known_truth(&self, condition: ValueId) -> Option<bool> {
        let data = self.kernel.definition(condition)?;
        let side = |at: usize| self.known_truth(data.operands[at]);
        let number = |at: usize| match self.kernel.definition(data.operands[at])?.op {
            Op::Constant { value: Literal::Int(number), .. } => Some(number),
            _ => None,
        };
        match data.op {
            Op::Constant { value: Literal::Int(truth), elem: Elem::Known(DType::Bool) } => Some(truth != 0),
            Op::Compare(predicate) => Some(predicate.holds(number(0)?, number(1)?)),
            Op::Unary(UnaryOp::Not) => side(0).map(|holds| !holds),
            Op::Binary(BinaryOp::And) => decided_by(false, side(0), side(1)),
            Op::Binary(BinaryOp::Or) => decided_by(true, side(0), side(1)),
            _ => None,
        }
    }
}

/// What joins two conditions one of which may decide the answer.
fn decided_by(decides: bool, a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(truth), _) | (_, Some(truth)) if truth == decides => Some(decides),
        (Some(_), Some(_)) => Some(!decides),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_decides_and_or_or_both() {
        let (yes, no) = (Some(true), Some(false));
        assert_eq!([decided_by(false, no, None), decided_by(false, None, no)], [no, no]);
        assert_eq!([decided_by(false, yes, no), decided_by(false, yes, yes)], [no, yes]);
        assert_eq!([decided_by(true, None, yes), decided_by(true, no, no)], [yes, no]);
        assert_eq!([decided_by(true, no, None), decided_by(false, yes, None)], [None, None]);
    }

    #[test]
    fn what_saturates_asks_for_the_format() {
        assert_eq!(computed(BinaryOp::SaturatingSub, 0, 1, Some(DType::Index)), Some(0));
        assert_eq!(computed(BinaryOp::SaturatingAdd, 100, 100, Some(DType::I8)), Some(127));
        assert_eq!(computed(BinaryOp::SaturatingSub, 0, 1, None), None);
        assert_eq!(
            (computed(BinaryOp::Xor, -1, 5, None), computed(BinaryOp::Div, 1, 0, None)),
            (Some(-6), None)
        );
        assert_eq!([BinaryOp::Min, BinaryOp::Max].map(|op| computed(op, -1, 5, None)), [Some(-1), Some(5)]);
    }
}
