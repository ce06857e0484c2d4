//! The tiles are for a loop to go through.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut tiles = y.tiles_persistent(RowMajor);
    for mut tile in tiles {
        tile.store_masked(x.load_masked(tile.index()));
    }
}

fn main() {}
