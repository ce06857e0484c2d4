//! The position of the first element that is true.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<i32, m, 1>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 1]);
    let past = x.load_masked(y.index()).cumsum(1) > 0.5;
    y.store_masked(past.argmax(1));
}

fn main() {}
