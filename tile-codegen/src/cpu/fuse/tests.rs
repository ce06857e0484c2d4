//! What is stored of tiles whose rows a reshape joins, and of long chains.

use super::{Fusion, LONGEST_CHAIN};
use crate::cpu::compiled::assembly;
use crate::cpu::region::extents;
use tile_ir::Instance;

/// Sums of rows of 512 products with a scale for each so many elements.
fn scaled_in_groups_of(elements: usize) -> Instance {
    let groups = 512 / elements;
    let source = format!(
        "kernel @k(%x: tensor<m x 512 x f32>, %s: tensor<m x {groups} x f32>, %y: mut tensor<m x 1 x f32>) {{
  %vx = partition %x [4, 512] : partition<m x 512 x f32, [4, 512]>
  %vs = partition %s [4, {groups}] : partition<m x {groups} x f32, [4, {groups}]>
  %vy = partition %y [4, 1] : mut partition<m x 1 x f32, [4, 1]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %zero : tile<4 x 512 x f32>
  %scales = load_masked %vs[%i, %j] pad %zero : tile<4 x {groups} x f32>
  %grouped = reshape %t : tile<4 x {groups} x {elements} x f32>
  %each = reshape %scales : tile<4 x {groups} x 1 x f32>
  %all = broadcast %each : tile<4 x {groups} x {elements} x f32>
  %scaled = mul %grouped, %all : tile<4 x {groups} x {elements} x f32>
  %rows = reshape %scaled : tile<4 x 512 x f32>
  %sum = reduce sum %rows axis 1 : tile<4 x 1 x f32>
  store_masked %vy, %sum
}}
"
    );
    Instance::parse(&source, &[]).unwrap()
}

/// How many tiles are stored of those whose shape has three axes, or that join such rows.
fn stored(instance: &Instance) -> usize {
    let fusion = Fusion::of(instance);
    let of_rows = fusion.stored.iter().filter(|&&tile| {
        let shape = fusion.shape_of(tile).map(extents).unwrap_or_default();
        shape.iter().product::<i64>() == 4 * 512
    });
    of_rows.count()
}

#[test]
fn joined_rows_of_whole_vectors_are_computed_where_they_are_summed() {
    let [of_vectors, of_halves] = [32, 16].map(|elements| stored(&scaled_in_groups_of(elements)));
    assert!(of_vectors < of_halves, "{of_vectors} and {of_halves} tiles are stored");
    let code = assembly(&scaled_in_groups_of(32), "x86-64-v4");
    assert!(!code.contains("gather") && code.contains("vbroadcastss"), "{code}");
}

#[test]
fn long_chains_are_stored_on_the_way() {
    let of_chain = |ops: usize| {
        let steps = (0..ops).map(|i| format!("  %t{} = mul %t{i}, %t{i} : tile<256 x f32>\n", i + 1));
        let steps: String = steps.collect();
        let source = format!(
            "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [256] : partition<n x f32, [256]>
  %vy = partition %y [256] : mut partition<n x f32, [256]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %t0 = load_masked %vx[%i] pad %zero : tile<256 x f32>
{steps}  store_masked %vy, %t{ops}
}}
"
        );
        Fusion::of(&Instance::parse(&source, &[]).unwrap()).stored.len()
    };
    // The load is the first op of the chain.
    assert_eq!([LONGEST_CHAIN - 1, LONGEST_CHAIN, 3 * LONGEST_CHAIN].map(of_chain), [0, 1, 2]);
}
