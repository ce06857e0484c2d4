//! A tensor is cut before it is loaded.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load(y.index());
    let u = x[0];
    let w = x.partition([BM, BN]);
    y.store_masked(t);
}

fn main() {}
