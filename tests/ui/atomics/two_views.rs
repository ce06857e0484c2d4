//! Any block may change what one block owns.

use tile::prelude::*;

#[tile_kernel]
fn kernel(counts: &mut Tensor<i32, n>) {
    let all = counts.atomic_view();
    let mut counts = counts.partition_view_mut([4]);
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.store_masked(all.load([i], Relaxed, DeviceScope));
}

fn main() {}
