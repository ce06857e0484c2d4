//! Tiles that are written don't overlap.

use tile::prelude::*;

#[tile_kernel]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.strided_view_mut([4], [2]);
    y.store_masked(Tile::zeros([4]));
}

fn main() {}
