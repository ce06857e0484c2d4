//! A launch is a safe function: what a kernel relies on without a check stands in its body.

use tile::prelude::*;

#[tile_kernel]
unsafe fn kernel(x: &Tensor<f32, n>, at: usize, y: &mut Tensor<f32, m>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(unsafe { x.partition_view([4]).load_unchecked([at]) });
}

fn main() {}
