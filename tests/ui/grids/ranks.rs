//! A row of results beside a matrix of them.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const R: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>, sums: &mut Tensor<f32, m>) {
    let x = x.partition_view([R, 64]);
    let mut y = y.partition_view_mut([R, 64]).spanning([1]);
    let mut sums = sums.partition_view_mut([R]);
    let [i] = sums.index();
    let mut sum = Tile::zeros([R, 1]);
    for j in 0..x.tiles(1) {
        let t = x.load_masked([i, j]);
        sum += t.sum(1);
        y.at([j]).store_masked(t * 2.0);
    }
    sums.store_masked(sum.squeeze(1));
}

fn main() {}
