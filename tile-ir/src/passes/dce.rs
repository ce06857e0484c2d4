//! Removes ops whose results nobody uses. A loop or branch stays if anything inside has an effect.

use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashSet;

/// Removes dead ops until none is left: removing one may make its operands' ops dead.
pub(crate) fn run(kernel: &mut Kernel) {
    let mut live = HashSet::new();
    let body = kernel.body();
    mark(kernel, body, &mut live);
    sweep(kernel, body, &live);
}

/// Marks the operands of everything that must stay, from the last op to the first.
fn mark(kernel: &Kernel, region: RegionId, live: &mut HashSet<ValueId>) {
    for &op in kernel.region(region).ops.iter().rev() {
        if stays(kernel, op, live) {
            let data = kernel.op(op);
            live.extend(&data.operands);
            for &inner in &data.regions {
                mark(kernel, inner, live);
            }
        }
    }
}

fn stays(kernel: &Kernel, op: OpId, live: &HashSet<ValueId>) -> bool {
    let data = kernel.op(op);
    // The mutable view and the loop over tiles declare the grid, used or not.
    let is_output = matches!(data.op, Op::Partition(_))
        && kernel.ty(data.results[0]).as_partition().is_some_and(|view| view.tensor.mutable);
    let declares_grid = is_output || matches!(data.op, Op::Tiles(_));
    data.op.has_effect()
        || declares_grid
        || data.results.iter().any(|result| live.contains(result))
        || data.regions.iter().any(|&region| acts_inside(kernel, region))
}

/// Whether an op does something that others see.
pub(super) fn acts(op: &Op) -> bool {
    op.has_effect() && *op != Op::Yield
}

/// Whether an op of a region, or inside of one, does something that others see.
pub(super) fn acts_inside(kernel: &Kernel, region: RegionId) -> bool {
    kernel.walk_in(region).into_iter().any(|op| acts(&kernel.op(op).op))
}

fn sweep(kernel: &mut Kernel, region: RegionId, live: &HashSet<ValueId>) {
    let ops = kernel.region(region).ops.clone();
    let kept: Vec<OpId> = ops.into_iter().filter(|&op| stays(kernel, op, live)).collect();
    for &op in &kept {
        for inner in kernel.op(op).regions.clone() {
            sweep(kernel, inner, live);
        }
    }
    kernel.region_mut(region).ops = kept;
}
