//! A mutable tensor without a partition view declares no grid.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let x = x.load_masked([0]);
}

fn main() {}
