//! A load in a closure.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let view = y.load_masked();
    y.store_masked(scan(view, 1, 0.0, |a, _| a + y.load_masked().sum(1)));
}

fn main() {}
