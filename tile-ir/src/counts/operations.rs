//! What one execution of an op does, per element.

use super::Operation;
use crate::dtype::DType;
use crate::ops::{BinaryOp, Op};

/// The operation that a leaf op does for each element of its result, whose operands have this format; `None` for what
/// moves or makes numbers without computing.
pub(super) fn of_leaf(op: &Op, operand: DType) -> Option<Operation> {
    let arithmetic = if operand.is_float() { Operation::Arithmetic } else { Operation::Other };
    match op {
        Op::Unary(unary) if unary.is_special() => Some(Operation::Special),
        Op::Unary(_) => Some(arithmetic),
        Op::Binary(binary) if binary.is_mathematical() => Some(Operation::Special),
        Op::Binary(BinaryOp::Div | BinaryOp::Rem) => Some(Operation::Special),
        Op::Binary(_) => Some(arithmetic),
        Op::MulAdd => Some(Operation::MultiplyAdd),
        Op::Compare(_) | Op::Classify(_) | Op::Select | Op::Cast(_) | Op::CastWith(..) => {
            Some(Operation::Other)
        }
        _ => None,
    }
}
