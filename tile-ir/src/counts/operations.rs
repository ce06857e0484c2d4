//! What one execution of an op does, per element.

use super::Operation;
use crate::dtype::DType;
use crate::ops::{BinaryOp, Op, UnaryOp};

/// The operation that a leaf op does for each element of its result, whose operands have this format; `None` for what
/// moves or makes numbers without computing.
pub(super) fn of_leaf(op: &Op, operand: DType) -> Option<Operation> {
    let arithmetic = if operand.is_float() { Operation::Arithmetic } else { Operation::Other };
    match op {
        Op::Unary(unary) if is_special(*unary) => Some(Operation::Special),
        Op::Unary(_) => Some(arithmetic),
        Op::Binary(BinaryOp::Div | BinaryOp::Rem | BinaryOp::Powf | BinaryOp::Atan2) => {
            Some(Operation::Special)
        }
        Op::Binary(_) => Some(arithmetic),
        Op::MulAdd => Some(Operation::MultiplyAdd),
        Op::Compare(_) | Op::Classify(_) | Op::Select | Op::Cast(_) | Op::CastWith(..) => {
            Some(Operation::Other)
        }
        _ => None,
    }
}

/// Whether a float pipe takes more than an instruction for it.
fn is_special(op: UnaryOp) -> bool {
    use UnaryOp::*;
    !matches!(
        op,
        Neg | Not
            | Abs
            | Floor
            | Ceil
            | Trunc
            | Round
            | RoundTiesEven
            | RoundTf32
            | CountOnes
            | LeadingZeros
            | TrailingZeros
            | Signum
    )
}
