//! Reductions stand right behind the tile that they go through, where ops on elements give it and others need it too: a target
//! that goes over tiles in memory then computes, stores and reduces it in one loop.
//!
//! Nothing else depends on where a reduction stands: it has no effect, and whatever reads its result comes later still.

use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashMap;

/// Moves reductions up in every region.
pub(super) fn run(kernel: &mut Kernel) {
    let mut uses: HashMap<ValueId, usize> = HashMap::new();
    let mut regions = vec![kernel.body()];
    for op in kernel.walk() {
        let data = kernel.op(op);
        data.operands.iter().for_each(|&operand| *uses.entry(operand).or_default() += 1);
        regions.extend(&data.regions);
    }
    regions.into_iter().for_each(|region| move_up(kernel, region, &uses));
}

fn move_up(kernel: &mut Kernel, region: RegionId, uses: &HashMap<ValueId, usize>) {
    let mut behind: HashMap<OpId, Vec<OpId>> = HashMap::new();
    let mut others = Vec::new();
    let mut leaves: HashMap<ValueId, OpId> = HashMap::new();
    for &op in &kernel.region(region).ops {
        let data = kernel.op(op);
        let tile = matches!(data.op, Op::Reduce { .. }).then(|| data.operands[0]);
        match tile.and_then(|tile| leaves.get(&tile)) {
            Some(&leaf) => behind.entry(leaf).or_default().push(op),
            None => others.push(op),
        }
        if data.op.is_leaf() {
            leaves.extend(
                data.results.iter().filter(|result| uses.get(*result) > Some(&1)).map(|&tile| (tile, op)),
            );
        }
    }
    let with_reductions = |op: OpId| std::iter::once(op).chain(behind.remove(&op).unwrap_or_default());
    kernel.region_mut(region).ops = others.into_iter().flat_map(with_reductions).collect();
}

#[cfg(test)]
mod tests {
    use crate::passes::{REDUCTIONS, run};
    use crate::{Instance, text};

    /// A tile that is reduced twice, one that is only reduced, and one that is loaded.
    #[test]
    fn reductions_follow_what_others_need_too() {
        let source = "\
kernel @k(%x: tensor<n x m x f32>, %y: mut tensor<n x m x f32>) {
  %vx = partition %x [4, 8] : partition<n x m x f32, [4, 8]>
  %vy = partition %y [4, 8] : mut partition<n x m x f32, [4, 8]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %0 : tile<4 x 8 x f32>
  %e = exp %t : tile<4 x 8 x f32>
  %s = sin %t : tile<4 x 8 x f32>
  %l = log %t : tile<4 x 8 x f32>
  %of_t = reduce max %t axis 1 : tile<4 x 1 x f32>
  %of_s = reduce sum %s axis 1 : tile<4 x 1 x f32>
  %most = reduce max %e axis 1 : tile<4 x 1 x f32>
  %sum = reduce sum %e axis 1 : tile<4 x 1 x f32>
  %all = mul %of_t, %of_s : tile<4 x 1 x f32>
  %both = mul %most, %sum : tile<4 x 1 x f32>
  %scale = mul %all, %both : tile<4 x 1 x f32>
  %rows = broadcast %scale : tile<4 x 8 x f32>
  %a = mul %e, %rows : tile<4 x 8 x f32>
  %b = mul %a, %l : tile<4 x 8 x f32>
  store_masked %vy, %b
}
";
        let instance = run(Instance::parse(source, &[]).unwrap(), &REDUCTIONS);
        insta::assert_snapshot!(text::print(&instance));
    }
}
