//! Tiles all of whose elements are one value, whatever that is: threads keep the value, and exchange nothing.

use super::movement::Moves;
use crate::gpu::LaidOut;
use crate::kernel::{OpId, ValueId};
use crate::ops::Op;
use std::collections::HashSet;

/// The tiles of a kernel of which it is known: those that are made of a scalar, and what follows from such alone.
pub(in crate::gpu) fn uniform(laid_out: &LaidOut, moves: &Moves) -> HashSet<ValueId> {
    let mut found = HashSet::new();
    for op in laid_out.instance.walk() {
        let data = laid_out.instance.op(op);
        let is_tile = |value: &ValueId| laid_out.distributions.contains_key(value);
        if data.results.first().is_some_and(is_tile) && is_uniform(laid_out, &found, moves, op) {
            found.extend(&data.results);
        }
    }
    found
}

fn is_uniform(laid_out: &LaidOut, found: &HashSet<ValueId>, moves: &Moves, op: OpId) -> bool {
    let is_one = |value: &ValueId| found.contains(value) || laid_out.instance.ty(*value).as_tile().is_none();
    let data = laid_out.instance.op(op);
    match &data.op {
        Op::Splat(_) => true,
        Op::ConvertLayout | Op::Reshape(_) => is_one(&data.operands[0]),
        Op::GatherLoad => data.operands[2..].iter().all(is_one),
        op if op.is_leaf() => data.operands.iter().all(is_one),
        _ => moves.movement(op).is_some_and(|movement| {
            let whole = movement.parts.last().filter(|part| part.piece.covers(&movement.shape));
            whole.is_some_and(|part| is_one(&data.operands[part.piece.operand]))
        }),
    }
}
