//! An order that falls does so along an axis.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for mut tile in y.tiles_persistent(Falling) {
        tile.store_masked(x.load_masked(tile.index()));
    }
}

fn main() {}
