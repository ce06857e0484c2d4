//! After the loop the block owns no tile.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut sum = Tile::zeros([4]);
    for tile in y.tiles_persistent(RowMajor) {
        sum += x.load_masked(tile.index());
    }
    y.store_masked(sum);
}

fn main() {}
