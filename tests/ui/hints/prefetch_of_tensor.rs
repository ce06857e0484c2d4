//! Tiles are those of a view.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    x.prefetch([0, 0]);
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
