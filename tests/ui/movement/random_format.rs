//! Random numbers are f32 or f64.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    y.store_masked(Tile::<bf16, 2>::random_uniform([BM, BN], 1, 0).cast());
}

fn main() {}
