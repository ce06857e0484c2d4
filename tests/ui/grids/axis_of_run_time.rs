//! An axis is a number.

use tile::prelude::*;

#[tile_kernel]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    for i in 0..n {
        y.store_masked(Tile::full([4], block_id(i) as f32));
    }
}

fn main() {}
