//! Products of f16 have sums of two formats.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f16, m, n>, y: &mut Tensor<f16, m, n>) {
    let x = x.partition_view([16, 16]);
    let mut y = y.partition_view_mut([16, 16]);
    let t = x.load_masked(y.index());
    let product = mma(t, t, Tile::zeros([16, 16]));
    y.store_masked(product.cast::<f16>());
}

fn main() {}
