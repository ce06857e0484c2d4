//! A value has the format of the tensor.

use tile::prelude::*;

#[tile_kernel(grid = [n])]
fn kernel(counts: &mut Tensor<i32, n>) {
    let counts = counts.atomic_view();
    let i = Tile::<i32, 1>::iota([4], 0);
    counts.fetch_add([i], i.cast::<i64>(), Relaxed, DeviceScope);
}

fn main() {}
