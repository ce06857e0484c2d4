//! Blocks share the tiles of an output, so the kernel has no grid of its own.

use tile::prelude::*;

#[tile_kernel(grid = [4])]
fn kernel(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for mut tile in y.tiles_persistent(RowMajor) {
        tile.store_masked(x.load_masked(tile.index()));
    }
}

fn main() {}
