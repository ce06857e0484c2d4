//! A generic element has a bound for the products that it takes part in.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T: Float, const B: usize>(x: &Tensor<T, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let x = x.load_masked(y.index());
    y.store_masked(mma(x, x.t(), Tile::zeros([B, B])));
}

fn main() {}
