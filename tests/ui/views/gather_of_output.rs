//! A block sees only its own tile of an output.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let all = y.gather([Tile::<i32, 1>::iota([B], 0)]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(all);
}

fn main() {}
