//! A loop in a closure.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let sums = scan(x, 1, 0.0, |a, b| {
        let mut sum = a;
        for _ in 0..3 {
            sum += b;
        }
        sum
    });
    let largest = reduce(x, 1, 0.0, |a, b| {
        let mut largest = a;
        while largest < b {
            largest += 1.0;
        }
        loop {
            break largest;
        }
    });
    y.store_masked(sums + largest);
}

fn main() {}
