//! Tiles of views have few methods.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1, 64]).spanning([1]);
    let tile = y.at([0]);
    tile.stor(x.load_masked([0, 0]));
}

fn main() {}
