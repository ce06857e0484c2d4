//! A closure that gives a comparison instead of a number.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    y.store_masked(scan(x, 1, 0.0, |a, b| a < b));
}

fn main() {}
