//! What is written is always there.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, n>, rest: Option<&mut Tensor<f32, n>>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(x.partition_view([4]).load_masked(y.index()));
}

fn main() {}
