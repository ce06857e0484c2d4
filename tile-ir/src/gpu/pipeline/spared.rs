//! What consumers are spared: ops whose results nothing needs but the copies, which are the producer's.

use super::Pipelines;
use crate::kernel::{Kernel, RegionId, ValueId};
use std::collections::HashSet;

/// The values of a scheduled kernel that none but copies need.
pub(super) fn spared(kernel: &Kernel, pipelines: &Pipelines) -> HashSet<ValueId> {
    let mut needed = HashSet::new();
    mark(kernel, pipelines, kernel.body(), &mut needed);
    let ops = kernel.walk().into_iter().map(|op| kernel.op(op));
    // What changes memory is the consumers' also where nobody needs what it gives.
    let simple = ops.filter(|data| data.regions.is_empty() && !data.op.has_effect());
    let unneeded = simple.filter(|data| data.results.iter().all(|result| !needed.contains(result)));
    unneeded.flat_map(|data| data.results.iter().copied()).filter(|&value| !pipelines.holds(value)).collect()
}

/// Marks what the consumers' ops of a region need, from the last op to the first. Loops and branches are theirs, too.
fn mark(kernel: &Kernel, pipelines: &Pipelines, region: RegionId, needed: &mut HashSet<ValueId>) {
    for &op in kernel.region(region).ops.iter().rev() {
        let data = kernel.op(op);
        let acts = data.op.has_effect() || !data.regions.is_empty();
        let is_needed = acts || data.results.iter().any(|result| needed.contains(result));
        if is_needed && !pipelines.replace(data) {
            needed.extend(&data.operands);
            data.regions.iter().for_each(|&inner| mark(kernel, pipelines, inner, needed));
        }
    }
}
