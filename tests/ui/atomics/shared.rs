//! A tensor that is only read has no atomic view.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &Tensor<i32, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
}

fn main() {}
