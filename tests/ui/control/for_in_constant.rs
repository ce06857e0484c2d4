//! Rust runs no `for` in a constant.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<u32, n>, y: &mut Tensor<u32, n>) {
    const TOTAL: u32 = {
        let mut sum = 0;
        for i in 0..4 {
            sum += i;
        }
        sum
    };
    let mut y = y.partition_view_mut([4]);
    let x = x.partition_view([4]).load_masked(y.index());
    let other = const {
        let mut sum = 0u32;
        for i in 0..4 {
            sum += i;
        }
        sum
    };
    y.store_masked(x * TOTAL + other);
}

fn main() {}
