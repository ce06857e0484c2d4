//! NumPy's transposition.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    y.store_masked(t.T);
}

#[tile_kernel]
fn batched<const B: usize>(x: &Tensor<f32, b, n, n>, y: &mut Tensor<f32, b, n, n>) {
    let x = x.partition_view([1, B, B]);
    let mut y = y.partition_view_mut([1, B, B]);
    let t = x.load_masked(y.index());
    y.store_masked(t.transpose(1, 2));
    y.store_masked(t.t());
}

fn main() {}
