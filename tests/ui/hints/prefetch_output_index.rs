//! Of an output a block has one tile.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    y.prefetch([0, 0]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
