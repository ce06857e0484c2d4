//! Masks are loaded and stored, without arithmetic.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<bool, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.store([i], true, Relaxed, DeviceScope);
    counts.fetch_or([i], true, Relaxed, DeviceScope);
}

fn main() {}
