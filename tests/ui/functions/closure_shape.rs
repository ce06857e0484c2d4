//! A mistake in a closure names the call.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    let add = |t: Tile<f32, 2>| t + Tile::zeros([BN, BM]);
    y.store_masked(add(x));
}

fn main() {}
