//! Blocks would write one element several times.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(y: &mut Tensor<f32, 1, n>) {
    let mut y = y.expand([8, n]).partition_view_mut([8, B]);
    y.store_masked(Tile::zeros([8, B]));
}

fn main() {}
