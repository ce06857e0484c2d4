//! An operation of one element has no mask.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<i32, n>) {
    let counts = counts.atomic_view();
    let i = block_id(0);
    counts.fetch_add_masked(i > 3, [i], 1, Relaxed, DeviceScope);
}

fn main() {}
