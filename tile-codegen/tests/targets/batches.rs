//! Products of a batch of matrices, in tiles of one matrix each, as a kernel naturally has them: pipelines bring and
//! warpgroups multiply what they do of matrices.

use crate::pipelines::check_on;
use crate::support::{instance, sample};
use tile_ir::gpu::schedule;
use tile_ir::{DType, TargetDesc, passes};

/// Tiles of so many rows, 64 columns and a depth of 64, with the sums' factor in a turn.
fn batched(rows: usize) -> String {
    format!(
        "\
kernel @batched(%a: tensor<b x m x k x bf16>, %w: tensor<b x k x n x bf16>, %c: mut tensor<b x m x n x f32>) where \"n\": rem(n, 8) eq 0, \"k\": rem(k, 8) eq 0 {{
  %va = partition %a [1, {rows}, 64] : partition<b x m x k x bf16, [1, {rows}, 64]>
  %vb = partition %w [1, 64, 64] : partition<b x k x n x bf16, [1, 64, 64]>
  %vc = partition %c [1, {rows}, 64] : mut partition<b x m x n x f32, [1, {rows}, 64]>
  %i, %j, %l = block_index %vc : index, index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<1 x {rows} x 64 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<1 x {rows} x 64 x f32> {{
    %ta = load_masked %va[%i, %j, %p] pad %pad : tile<1 x {rows} x 64 x bf16>
    %tb = load_masked %vb[%i, %p, %l] pad %pad : tile<1 x 64 x 64 x bf16>
    %next = mma %ta, %tb, %acc : tile<1 x {rows} x 64 x f32>
    yield %next
  }}
  store_masked %vc, %sum
}}
"
    )
}

#[test]
fn tiles_of_one_matrix_are_multiplied_by_warpgroups() {
    let arguments = [
        sample(DType::BF16, &[2, 100, 136], 1),
        sample(DType::BF16, &[2, 136, 72], 2),
        sample(DType::F32, &[2, 100, 72], 3),
    ];
    for (target, rows) in [("sm_90a", 64), ("sm_100a", 128)] {
        let source = batched(rows);
        let optimized = passes::optimize(instance(&source, &[]));
        let scheduled = schedule(optimized, TargetDesc::named(target).unwrap(), None);
        assert!(!scheduled.pipelines().is_empty(), "{:?}", scheduled.remarks());
        assert!(scheduled.remarks().is_empty(), "{:?}", scheduled.remarks());
        check_on((target, scheduled.block_threads() as u32), &source, &[], &arguments, 0.0);
    }
}
