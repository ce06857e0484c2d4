//! Rust reads a number on the left of `+=` after the right side, which is hard to see.

use tile::prelude::*;

#[tile_kernel]
fn kernel(a: i32, y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([1]);
    let mut sum = a;
    sum += {
        sum *= 2;
        sum
    };
    y.store_masked(Tile::full([1], sum));
}

fn main() {}
