//! Blocks span axes of outputs.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1, 64]);
    let x = x.spanning([1]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
