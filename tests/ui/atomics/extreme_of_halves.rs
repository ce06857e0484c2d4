//! Halves are added, read and written.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<f16, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.fetch_max([i], Tile::ones([4]), Relaxed, DeviceScope);
}

fn main() {}
