//! A block is asked for along an axis that the grid has.

use tile::prelude::*;

#[tile_kernel]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::full([4], block_id(1) as f32));
}

fn main() {}
