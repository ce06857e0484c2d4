//! The tile of one turn is not that of the next.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut last = x.load_masked([0]);
    for mut tile in y.tiles_persistent(RowMajor) {
        tile.store_masked(last);
        last = tile;
    }
}

fn main() {}
