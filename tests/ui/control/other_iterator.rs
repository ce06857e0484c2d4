//! Loops run over ranges and arrays.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    let mut z = x;
    for (k, part) in [x, x].iter().enumerate() {
        z += part * k as f32;
    }
    y.store_masked(z);
}

fn main() {}
