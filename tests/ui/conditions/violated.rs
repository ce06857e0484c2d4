//! An instance keeps the kernel's conditions.

use tile::prelude::*;

#[tile_kernel(where(BM % 16 == 0 || !(BN < 9), BM * BN <= 1024), instances(BM = 16, BN = 64; BM = 24, BN = 8; BM = 64, BN = 32))]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(x);
}

fn main() {}
