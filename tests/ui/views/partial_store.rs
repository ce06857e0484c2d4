//! The last of three tiles of 4 ends beyond 10 elements.

use tile::prelude::*;

#[tile_kernel]
fn kernel(y: &mut Tensor<f32, 10>) {
    let mut y = y.partition_view_mut([4]);
    y.store(Tile::zeros([4]));
}

fn main() {}
