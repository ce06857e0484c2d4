//! A mask is a tile of bool.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<i32, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.fetch_add_masked(i, [i], 1, Relaxed, DeviceScope);
}

fn main() {}
