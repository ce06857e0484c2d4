//! A variable keeps its shape around a loop.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    let mut z = x;
    let mut turns = 0;
    while turns < 4 {
        z = z.t();
        turns += 1;
    }
    y.store_masked(z);
}

fn main() {}
