//! A mutable tensor has no shared view.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let a = y.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    y.store_masked(a.load_masked([0, 0]));
}

fn main() {}
