//! Not every format has atomic operations.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<bool, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
}

fn main() {}
