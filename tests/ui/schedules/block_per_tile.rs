//! Blocks share the tiles of a loop, so there can't be one for each.

use tile::prelude::*;

#[tile_kernel(grid = tiles)]
fn kernel(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for mut tile in y.tiles_persistent(RowMajor) {
        tile.store_masked(x.load_masked(tile.index()));
    }
}

fn main() {}
