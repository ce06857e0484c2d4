//! Moves ops out of loops whose operands the loop doesn't change.
//!
//! What is moved does no harm where the loop runs zero times: every op is total but a load without a mask. Its bounds
//! hold wherever its op runs, and that may be because of the loop: nothing is checked of a loop without turns. So it
//! is moved only out of a loop that surely has a turn, or if its bounds hold for all sizes. In a `while` they may hold
//! by its condition, so that such a load stays there.

use super::cse::is_value;
use crate::analysis::{Facts, Ranges, bounds};
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashSet;

/// Hoists from the innermost loop outwards.
pub(super) fn run(kernel: &mut Kernel) {
    let body = kernel.body();
    let ranges = Ranges::under(kernel, Facts::of(kernel));
    region(kernel, &ranges, body);
}

fn region(kernel: &mut Kernel, ranges: &Ranges, region_id: RegionId) {
    let mut result = Vec::new();
    for op in kernel.region(region_id).ops.clone() {
        for inner in kernel.op(op).regions.clone() {
            region(kernel, ranges, inner);
        }
        if kernel.op(op).op.is_loop() {
            result.extend(hoist(kernel, ranges, op));
        }
        result.push(op);
    }
    kernel.region_mut(region_id).ops = result;
}

/// Takes the ops that don't change out of a loop's region.
fn hoist(kernel: &mut Kernel, ranges: &Ranges, op: OpId) -> Vec<OpId> {
    let region = kernel.op(op).regions[0];
    let is_tile_loop = matches!(kernel.op(op).op, Op::Tiles(_));
    let is_while = kernel.op(op).op == Op::While;
    let turns = has_turn(kernel, ranges, op);
    let changing = kernel.region(region).params.iter().copied().collect();
    // Outside of the loop over tiles there is no tile to have an index.
    let stays = |data: &OpData| is_tile_loop && data.op == Op::BlockIndex;
    let (moved, kept) = split(kernel, region, changing, &|inner| {
        let data = kernel.op(inner);
        let is_load = matches!(data.op, Op::Load { .. });
        let guarded = is_load && (is_while || !turns && !is_inside(kernel, ranges, inner));
        !guarded && is_value(kernel, data) && !stays(data)
    });
    kernel.region_mut(region).ops = kept;
    moved
}

/// The ops of a region that may leave it, and whose operands are made outside of it or by such ops, without those that
/// are `changing`; and the others.
pub(crate) fn split(
    kernel: &Kernel,
    region: RegionId,
    mut changing: HashSet<ValueId>,
    may_leave: &dyn Fn(OpId) -> bool,
) -> (Vec<OpId>, Vec<OpId>) {
    kernel.region(region).ops.iter().partition(|&&op| {
        let data = kernel.op(op);
        let leaves = data.operands.iter().all(|operand| !changing.contains(operand)) && may_leave(op);
        if !leaves {
            changing.extend(&data.results);
        }
        leaves
    })
}

/// Whether a loop surely runs its body.
fn has_turn(kernel: &Kernel, ranges: &Ranges, op: OpId) -> bool {
    let data = kernel.op(op);
    match data.operands.as_slice() {
        &[start, end, ..] if data.op == Op::For => ranges.is_less(kernel, op, start, end),
        _ => false,
    }
}

/// Whether a load without a mask reads inside for all sizes that the kernel runs with.
fn is_inside(kernel: &Kernel, ranges: &Ranges, op: OpId) -> bool {
    let is_checked = kernel.op(op).op == Op::Load { checked: true };
    let bounds = bounds::bounds(kernel, ranges, op);
    is_checked && bounds.is_ok_and(|bounds| bounds.iter().all(|bound| bound.decide() == Some(true)))
}

#[cfg(test)]
mod tests {
    use crate::passes::{PIPELINE, optimize, run};
    use crate::{Instance, text};

    /// The text of a kernel with a load in a loop over `end`, before that loop.
    fn before_loop(condition: &str, end: &str, pass: Option<&str>) -> String {
        let source = format!(
            "kernel @k(%x: tensor<m x f32>, %y: mut tensor<n x f32>){condition} {{
  %vx = partition %x [4] : partition<m x f32, [4]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  %zero = constant 0 : index
  %one = constant 1 : index
  %f = constant 0.0 : f32
  %start = splat %f : tile<4 x f32>
  %end = extent {end} : index
  %sum = for %p = %zero to %end carry (%acc = %start) : tile<4 x f32> {{
    %q = rem %p, %one : index
    %t = load %vx[%q] : tile<4 x f32>
    %u = load %vx[%zero] : tile<4 x f32>
    %v = add %t, %u : tile<4 x f32>
    %s = add %acc, %v : tile<4 x f32>
    yield %s
  }}
  store_masked %vy, %sum
}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        let instance = match pass {
            Some(name) => run(instance, PIPELINE.iter().find(|pass| pass.name == name).unwrap()),
            None => optimize(instance),
        };
        let printed = text::print(&instance);
        printed.split_once(" = for").expect("the loop stays").0.to_owned()
    }

    #[test]
    fn loads_leave_loops_that_surely_run_or_read_inside_anyway() {
        for (condition, end, moves) in [
            ("", "floor_div(m, 4)", false),
            ("", "2", true),
            (" where \"a\": m ge 1", "m", true),
            (" where \"a\": m ge 4", "n", true),
            (" where \"a\": m ge 3", "n", false),
        ] {
            let moved = before_loop(condition, end, Some("licm")).matches("load").count();
            assert_eq!(moved, usize::from(moves), "{condition} {end}");
            let all = before_loop(condition, end, None).contains("load");
            assert_eq!(all, moves, "{condition} {end}");
        }
    }
}
