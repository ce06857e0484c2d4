//! What one execution of an op does, per element.

use super::Operation;
use crate::dtype::DType;
use crate::ops::Op;
use crate::ops::elementwise::Cost;

/// What a Philox counts as: each of its ten rounds has two products, of which both halves are taken, and four exclusive ors,
/// some in one instruction. Measured: a Zen 5 takes 4.3 clocks for an element in vectors of 512 bits, two instructions a
/// clock.
const PHILOX: u64 = 64;

/// The operation that an op does for each element of its result, whose operands have this format, and how often; `None`
/// for what moves or makes numbers without computing.
pub(super) fn of_elements(op: &Op, operand: DType) -> Option<(Operation, u64)> {
    match op {
        Op::Unary(unary) => Some(of_cost(unary.cost(), operand)),
        Op::Binary(binary) => Some(of_cost(binary.cost(), operand)),
        Op::MulAdd => Some((Operation::MultiplyAdd, 1)),
        Op::Compare(_) | Op::Classify(_) | Op::Select | Op::Lookup { .. } => Some((Operation::Other, 1)),
        Op::Cast(_) | Op::CastWith(..) | Op::SaturatingCast(_) => Some((Operation::Other, 1)),
        Op::Constant { .. } | Op::Extent(_) | Op::Bitcast(_) => None,
        // Elements of operands, or their places.
        Op::Splat(_) | Op::Iota { .. } | Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) => None,
        Op::Movement(_) | Op::Gather { .. } | Op::Scatter { .. } | Op::Item => None,
        Op::View(_) | Op::Partition(_) | Op::BlockId { .. } | Op::BlockCount { .. } => None,
        Op::Prefetch | Op::Print { .. } | Op::Assert { .. } | Op::Yield => None,
        // Those of schedules are counted before there are any.
        Op::ConvertLayout | Op::MmaScaled => None,
        Op::BlockIndex | Op::For | Op::While | Op::If | Op::Tiles(_) => not_by_element(op),
        Op::Mma | Op::Reduce { .. } | Op::Scan { .. } | Op::Sort { .. } | Op::Histogram(_) => {
            not_by_element(op)
        }
        Op::ReduceWith { .. } | Op::ScanWith { .. } => not_by_element(op),
        Op::LoadMasked | Op::Load { .. } | Op::GatherLoad => not_by_element(op),
        Op::StoreMasked | Op::Store | Op::Atomic(_) => not_by_element(op),
    }
}

fn not_by_element(op: &Op) -> ! {
    unreachable!("`{}` is counted by what it goes through, not by the elements that it gives", op.name())
}

fn of_cost(cost: Cost, operand: DType) -> (Operation, u64) {
    match cost {
        Cost::OneInstruction if operand.is_float() => (Operation::Arithmetic, 1),
        Cost::OneInstruction => (Operation::Other, 1),
        Cost::Division | Cost::Function => (Operation::Special, 1),
        Cost::Rounds => (Operation::Other, PHILOX),
    }
}
