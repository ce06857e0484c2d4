//! A grid is an array.

use tile::prelude::*;

#[tile_kernel(grid = 4)]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::zeros([4]));
}

fn main() {}
