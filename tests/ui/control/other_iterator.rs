//! Loops run over ranges and arrays.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    let mut z = x;
    for part in x {
        z += part;
    }
    let total = (0..n).map(|k| k as f32).fold(0.0, |a, b| a + b);
    let [a, b] = [x, x];
    let sum: f32 = [1.0, 2.0].iter().sum();
    for part in &mut [a, b] {
        z += total * sum;
    }
    y.store_masked(z);
}

fn main() {}
