//! A condition of numbers that is false forbids every instance.

use tile::prelude::*;

#[tile_kernel(where(3 > 4), instances(BM = 16, BN = 64))]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(x);
}

fn main() {}
