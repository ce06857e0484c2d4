//! A closure has a name.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    let pair = (|t: Tile<f32, 2>| t + t, 2.0);
    y.store_masked((pair.0)(x));
}

fn main() {}
