//! Floats and integers don't mix.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    let count = 3;
    let sums = t + 1 + count;
    let k = 2i32 * 1.5;
    y.store_masked(t);
}

fn main() {}
