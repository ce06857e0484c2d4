//! A mistake in one value of several is said once.

use tile::prelude::*;

#[tile_kernel(instances(B = 4 | f32, C = 1 | 2, D = 1))]
fn kernel<const B: usize, const C: usize, const D: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B * C * D]);
    y.store_masked(Tile::zeros([B * C * D]));
}

fn main() {}
