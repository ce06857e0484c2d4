//! What one execution of an op does, per element.

use super::Operation;
use crate::dtype::DType;
use crate::ops::{BinaryOp, Op};

/// What a Philox counts as: each of its ten rounds has two products, of which both halves are taken, and four exclusive ors,
/// some in one instruction. Measured: a Zen 5 takes 4.3 clocks for an element in vectors of 512 bits, two instructions a
/// clock.
const PHILOX: u64 = 64;

/// The operation that a leaf op does for each element of its result, whose operands have this format, and how often; `None`
/// for what moves or makes numbers without computing.
pub(super) fn of_leaf(op: &Op, operand: DType) -> Option<(Operation, u64)> {
    let arithmetic = if operand.is_float() { Operation::Arithmetic } else { Operation::Other };
    let operation = match op {
        Op::Unary(unary) if unary.is_special() => Operation::Special,
        Op::Unary(_) => arithmetic,
        Op::Binary(BinaryOp::Philox) => return Some((Operation::Other, PHILOX)),
        Op::Binary(binary) if binary.is_mathematical() || is_quotient(*binary) => Operation::Special,
        Op::Binary(_) => arithmetic,
        Op::MulAdd => Operation::MultiplyAdd,
        Op::Compare(_)
        | Op::Classify(_)
        | Op::Select
        | Op::Cast(_)
        | Op::CastWith(..)
        | Op::SaturatingCast(_)
        | Op::Lookup { .. } => Operation::Other,
        _ => return None,
    };
    Some((operation, 1))
}

/// Whether an op divides.
fn is_quotient(op: BinaryOp) -> bool {
    use BinaryOp::{Div, DivCeil, DivFloor, Rem, RemEuclid};
    matches!(op, Div | Rem | DivCeil | DivFloor | RemEuclid)
}
