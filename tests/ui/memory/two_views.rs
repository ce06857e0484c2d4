//! A mutable tensor is cut once.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut a = y.partition_view_mut([BM, BN]);
    let mut b = y.partition_view_mut([BN, BM]);
    a.store_masked(Tile::zeros([BM, BN]));
    b.store_masked(Tile::zeros([BN, BM]));
}

fn main() {}
