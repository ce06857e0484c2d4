//! A power of a parameter is no extent.

use tile::prelude::*;

#[tile_kernel(where(N == 1 << LOG))]
fn condition<const N: usize, const LOG: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([N]);
    y.store_masked(Tile::zeros([N]));
}

fn main() {}
