//! A product of formats that don't go together.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f16, n, n>, w: &Tensor<bf16, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let w = w.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let (x, w) = (x.load_masked(y.index()), w.load_masked(y.index()));
    y.store_masked(mma(x, w, Tile::zeros([B, B])));
}

fn main() {}
