//! How a tensor is moved is known when the kernel is launched.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, by: usize) {
    let x = x.step(0, by).partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
