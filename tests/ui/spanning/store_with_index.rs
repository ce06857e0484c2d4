//! A store to a block's one tile takes no index.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1, 64]);
    y.store_masked([0, 0], x.load_masked(y.index()));
}

fn main() {}
