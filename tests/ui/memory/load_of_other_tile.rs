//! A block reads its own tile of a mutable tensor.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let own = y.load_masked([0, 0]);
    y.store_masked(own);
}

fn main() {}
