//! Loops that multiply within loops that multiply, each with a ring of its own: one producer copies for both in the order of
//! their turns, so nothing is multiplied ahead of what it copies later.

use crate::pipelines::{arguments_of_attention, check_on};
use crate::support::sample;
use tile_ir::DType;
use tile_test_edit::Edit;

/// Scores, which weigh values in the same turn; `BEFORE` and `BEHIND` are what else the turn does.
const SCORES: &str = "\
kernel @nested(%q: tensor<s x 64 x bf16>, %k: tensor<t x 64 x bf16>, %v: tensor<t x 64 x bf16>, %o: mut tensor<s x 64 x f32>, \
    %l: mut tensor<s x 64 x f32>, %x: tensor<s x d x bf16>, %y: tensor<d x t x bf16>) \
    where \"d % 8 == 0\": rem(d, 8) eq 0, \"t % 8 == 0\": rem(t, 8) eq 0 {
  %vq = partition %q [128, 64] : partition<s x 64 x bf16, [128, 64]>
  %vk = partition %k [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vv = partition %v [64, 64] : partition<t x 64 x bf16, [64, 64]>
  %vo = partition %o [128, 64] : mut partition<s x 64 x f32, [128, 64]>
  %vl = partition %l [128, 64] : mut partition<s x 64 x f32, [128, 64]>
  %vx = partition %x [128, 64] : partition<s x d x bf16, [128, 64]>
  %vy = partition %y [64, 64] : partition<d x t x bf16, [64, 64]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %query = load_masked %vq[%i, %0] pad %pad : tile<128 x 64 x bf16>
  %none = splat %zero : tile<128 x 64 x f32>
  %end = extent ceil_div(t, 64) : index
  %depth = extent ceil_div(d, 64) : index
  %sum, %all = for %p = %0 to %end carry (%acc = %none, %total = %none) : tile<128 x 64 x f32>, tile<128 x 64 x f32> {
BEFORE    %key = load_masked %vk[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<64 x 64 x bf16>
    %turned = permute %key [1, 0] : tile<64 x 64 x bf16>
    %products = mma %query, %turned, %none : tile<128 x 64 x f32>
    %scores = max %products, %bias : tile<128 x 64 x f32>
    %weights = exp2 %scores : tile<128 x 64 x f32>
    %narrow = cast %weights : tile<128 x 64 x bf16>
    %next = mma %narrow, %value, %acc : tile<128 x 64 x f32>
BEHIND    yield %next, %more
  }
  store_masked %vo, %sum
  store_masked %vl, %all
}
";

/// A loop over the depth of `%x`, of what it multiplies with it from these sums on.
fn loop_of(name: &str, from: &str, right: &str) -> String {
    let load = "      %ty = load_masked %vy[%h, %p] pad %pad : tile<64 x 64 x bf16>\n";
    let load = if right == "%ty" { load } else { "" };
    format!(
        "    {name} = for %h = %0 to %depth carry (%part = {from}) : tile<128 x 64 x f32> {{
      %tx = load_masked %vx[%i, %h] pad %pad : tile<128 x 64 x bf16>
{load}      %added = mma %tx, {right}, %part : tile<128 x 64 x f32>
      yield %added
    }}
"
    )
}

/// Values and scores, with more turns and fewer of the inner loop than a ring has stages.
fn check(source: &str) {
    for depth in [0, 64, 328] {
        let [queries, keys] = [136, 200];
        let [q, k, v, o, _] = arguments_of_attention([queries, keys, 64]);
        let [x, y] = [[queries, depth], [depth, keys]].map(|extents| sample(DType::BF16, &extents, 7));
        let arguments = [q, k, v, o.clone(), o, x, y];
        for on in [("sm_90a", 384), ("sm_100a", 384)] {
            check_on(on, source, &[], &arguments, 1e-2);
        }
    }
}

#[test]
fn a_product_is_not_done_ahead_of_a_loop_that_multiplies_before_it() {
    let bias = loop_of("%bias", "%none", "%ty");
    let total = "    %more = add %total, %weights : tile<128 x 64 x f32>\n";
    check(&SCORES.edit("BEFORE", &bias).edit("BEHIND", total));
}

/// The inner loop multiplies by the tile that a product before it multiplies by.
#[test]
fn a_product_is_not_done_a_turn_later_than_a_loop_behind_it_that_reads_its_factor() {
    let total = loop_of("%more", "%total", "%value");
    check(&SCORES.edit("BEFORE", "").edit("BEHIND", &total).edit("%products, %bias", "%products, %none"));
}
