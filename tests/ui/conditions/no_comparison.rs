//! A condition compares extents.

use tile::prelude::*;

#[tile_kernel(where(BM, BM % 2, m == 2.0, BM % 4 == 0 || BN % 4 == 0))]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(x);
}

fn main() {}
