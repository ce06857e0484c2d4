//! How many blocks share tiles is the choice of the launch.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for mut tile in y.tiles_persistent(RowMajor) {
        tile.store_masked(x.load([block_id(0)]));
    }
}

fn main() {}
