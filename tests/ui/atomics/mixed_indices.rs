//! An array has elements of one type; a tuple mixes tiles and numbers.

use tile::prelude::*;

#[tile_kernel(grid = [m])]
fn kernel(counts: &mut Tensor<i32, m, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.fetch_add([block_id(0), i], 1, Relaxed, DeviceScope);
}

fn main() {}
