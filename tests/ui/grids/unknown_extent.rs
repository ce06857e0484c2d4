//! A grid is made of names of the signature.

use tile::prelude::*;

#[tile_kernel(grid = [k, 4])]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::zeros([4]));
}

fn main() {}
