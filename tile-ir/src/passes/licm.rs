//! Moves ops out of loops whose operands the loop doesn't change.
//!
//! Every op that is moved is total, so that it does no harm where the loop runs zero times: a masked load is
//! defined for any index, and the bounds of a load without a mask hold wherever its index has a value. In a `while`
//! they may hold by its condition, so that such a load stays there.

use super::cse::is_value;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashSet;

/// Hoists from the innermost loop outwards.
pub(super) fn run(kernel: &mut Kernel) {
    let body = kernel.body();
    region(kernel, body);
}

fn region(kernel: &mut Kernel, region_id: RegionId) {
    let mut result = Vec::new();
    for op in kernel.region(region_id).ops.clone() {
        for inner in kernel.op(op).regions.clone() {
            region(kernel, inner);
        }
        if matches!(kernel.op(op).op, Op::For | Op::While | Op::Tiles(_)) {
            result.extend(hoist(kernel, op));
        }
        result.push(op);
    }
    kernel.region_mut(region_id).ops = result;
}

/// Takes the ops that don't change out of a loop's region.
fn hoist(kernel: &mut Kernel, op: OpId) -> Vec<OpId> {
    let region = kernel.op(op).regions[0];
    let is_tile_loop = matches!(kernel.op(op).op, Op::Tiles(_));
    let is_while = kernel.op(op).op == Op::While;
    let mut changing: HashSet<ValueId> = kernel.region(region).params.iter().copied().collect();
    // Outside of the loop over tiles there is no tile to have an index.
    let stays = |data: &OpData| is_tile_loop && data.op == Op::BlockIndex;
    let (mut moved, mut kept) = (Vec::new(), Vec::new());
    for inner in kernel.region(region).ops.clone() {
        let data = kernel.op(inner);
        let guarded = is_while && matches!(data.op, Op::Load { .. });
        let fixed = !guarded && data.operands.iter().all(|operand| !changing.contains(operand));
        if fixed && is_value(kernel, data) && !stays(data) {
            moved.push(inner);
        } else {
            changing.extend(&data.results);
            kept.push(inner);
        }
    }
    kernel.region_mut(region).ops = kept;
    moved
}
