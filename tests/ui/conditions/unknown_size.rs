//! Conditions are of parameters and sizes.

use tile::prelude::*;

#[tile_kernel(where(k % BM == 0, BQ < 4))]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(x);
}

fn main() {}
