//! A warning that doesn't exist.

use tile::prelude::*;

#[tile_kernel(allow(slow_loads))]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
