//! A grid has an axis.

use tile::prelude::*;

#[tile_kernel(grid = [])]
fn kernel(x: &Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let x = x.load_masked([0]);
}

fn main() {}
