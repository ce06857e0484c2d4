//! An instance binds the kernel's parameters only.

use tile::prelude::*;

#[tile_kernel(instances(B = 4, C = 8))]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
