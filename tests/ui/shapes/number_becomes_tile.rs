//! What begins as a number doesn't become a tile.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 1]);
    let [i, _] = y.index();
    let mut sum = 0.0;
    for j in 0..x.tiles(1) {
        sum += x.load_masked([i, j]).sum(1);
    }
    y.store_masked(sum + Tile::zeros([4, 1]));
}

fn main() {}
