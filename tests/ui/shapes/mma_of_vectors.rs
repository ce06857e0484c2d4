//! A product of vectors.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(mma(x, x, Tile::zeros([B])));
}

fn main() {}
