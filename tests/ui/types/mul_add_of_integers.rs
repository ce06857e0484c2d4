//! A fused multiply-add of integers.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(x.mul_add(x, x));
}

fn main() {}
