//! An extent of a grid is arithmetic on sizes.

use tile::prelude::*;

#[tile_kernel(grid = [n.pow(2), "two"])]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::zeros([4]));
}

fn main() {}
