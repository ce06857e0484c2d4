//! The tile is a view, not its index.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for [i] in y.tiles_persistent(RowMajor) {
        y.store_masked(x.load_masked([i]));
    }
}

fn main() {}
