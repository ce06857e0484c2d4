//! Bytes are read and written alone.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<i8, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.fetch_add([i], Tile::ones([4]), Relaxed, DeviceScope);
}

fn main() {}
