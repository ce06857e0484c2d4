//! A loop that indexes an array of tiles is unrolled.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    let mut parts = [x; 100];
    for k in 0..100 {
        parts[k] += x;
    }
    y.store_masked(parts[99]);
}

fn main() {}
