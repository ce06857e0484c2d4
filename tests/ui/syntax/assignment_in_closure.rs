//! A closure that changes a variable outside.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let mut count = 0.0;
    let sums = scan(x, 1, 0.0, |a, b| {
        count += 1.0;
        a + b
    });
    y.store_masked(sums * count);
}

fn main() {}
