//! Only a mutable view is stored to.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    x.store_masked(Tile::zeros([BM, BN]));
}

fn main() {}
