//! Every wait, arrival, fence, commit and allocation of products in tensor memory is taken away in turn, and missed.

use super::mutations::{
    Case, RUNS, Shapes, carried, every_one_is_missed_on, replace_uses, run_on, unmissed_on,
};
use crate::simt::*;
use tile_test_edit::Edit;

const ON: &str = "sm_100a";

/// A product in tiles of 128×64, stored by threads, or with whole lines by copies.
fn matmul(columns: usize) -> String {
    super::mutations::MATMUL.edit("64", "128").edit("96", &columns.to_string())
}

const NARROW: Shapes = |depth| vec![vec![384, depth], vec![depth, 16], vec![384, 16]];
const WIDE: Shapes = |depth| vec![vec![384, depth], vec![depth, 64], vec![384, 64]];

#[test]
fn nothing_can_be_left_out_of_a_product() {
    // Nothing is stored through shared memory, and then through panels.
    let [narrow, wide] = [(matmul(16), NARROW), (matmul(64), WIDE)]
        .map(|(source, shapes)| every_one_is_missed_on(ON, (&source, shapes)));
    assert_eq!([narrow, wide], [37, 43]);
}

/// Both blocks of a pair copy to the stages that one leaves.
#[test]
fn nothing_can_be_left_out_of_pairs() {
    let source = matmul(64).replacen(" {\n", " pairs 0 {\n", 1);
    let shapes: Shapes = |depth| vec![vec![768, depth], vec![depth, 64], vec![768, 64]];
    every_one_is_missed_on(ON, (&source, shapes));
}

/// Weighted values, of which a block has several tiles: of weights that are computed, with sums that are kept or that threads
/// shrink, stored through shared memory over the weights or not.
fn attention(width: usize, shrinks: bool) -> String {
    let (before, sums) = match shrinks {
        true => ("    %half = mul %acc, %halves : tile<128 x W x f32>\n", "%half"),
        false => ("", "%acc"),
    };
    let text = format!(
        "kernel @attention(%q: tensor<s x 32 x bf16>, %k: tensor<t x 32 x bf16>, %v: tensor<t x W x bf16>, %o: mut tensor<s x W x f32>) {{
  %vq = partition %q [128, 32] : partition<s x 32 x bf16, [128, 32]>
  %vk = partition %k [32, 32] : partition<t x 32 x bf16, [32, 32]>
  %vv = partition %v [32, W] : partition<t x W x bf16, [32, W]>
  %vo = partition %o [128, W] : mut partition<s x W x f32, [128, W]>
  %i, %j = block_index %vo : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %part = constant 0.5 : f32
  %halves = splat %part : tile<128 x W x f32>
  %none = splat %zero : tile<128 x W x f32>
  %start = splat %zero : tile<128 x 32 x f32>
  %query = load_masked %vq[%i, %0] pad %pad : tile<128 x 32 x bf16>
  %end = extent ceil_div(t, 32) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<128 x W x f32> {{
    %key = load_masked %vk[%p, %0] pad %pad : tile<32 x 32 x bf16>
    %value = load_masked %vv[%p, %0] pad %pad : tile<32 x W x bf16>
    %turned = permute %key [1, 0] : tile<32 x 32 x bf16>
    %scores = mma %query, %turned, %start : tile<128 x 32 x f32>
    %weights = exp2 %scores : tile<128 x 32 x f32>
    %narrow = cast %weights : tile<128 x 32 x bf16>
{before}    %next = mma %narrow, %value, {sums} : tile<128 x W x f32>
    yield %next
  }}
  store_masked %vo, %sum
}}
"
    );
    text.replace('W', &width.to_string())
}

#[test]
fn nothing_can_be_left_out_of_attention() {
    let narrow: Shapes = |keys| vec![vec![384, 32], vec![keys, 32], vec![keys, 16], vec![384, 16]];
    let wide: Shapes = |keys| vec![vec![384, 32], vec![keys, 32], vec![keys, 64], vec![384, 64]];
    for shrinks in [false, true] {
        every_one_is_missed_on(ON, (&attention(16, shrinks), narrow));
        // A store over the weights begins with a barrier of all consumers, which does for that before the memory is freed.
        let (number, unmissed) = unmissed_on(ON, (&attention(64, shrinks), wide));
        let is_barrier = |name: &String| name.ends_with("barrier.cta.sync.aligned.count");
        assert!(number > 70 && unmissed.len() == 1 && unmissed.iter().all(is_barrier), "{unmissed:?}");
    }
}

/// The stages and parities with which a tile left the rings of tiles and of sums, in each role that goes round them.
#[test]
fn stages_of_the_tile_before_are_missed() {
    let source = matmul(64);
    let case: Case<'_> = (&source, WIDE);
    let mut count = 0;
    run_on(ON, case, RUNS[0], &mut |ir| count = carried(ir).len()).unwrap_or_else(|fault| panic!("{fault}"));
    let is_missed = |number: &usize| {
        let begin_anew = &mut |ir: &Ir<'_>| {
            let phi = carried(ir)[*number];
            replace_uses(phi.as_instruction(), ir.context.i32_type().const_zero().into());
        };
        RUNS[..2].iter().any(|&how| run_on(ON, case, how, begin_anew).is_err())
    };
    // Of tiles: the producer and the multiplier. Of sums: the multiplier and the consumers.
    assert_eq!((count, (0..count).filter(is_missed).count()), (8, 8));
}
