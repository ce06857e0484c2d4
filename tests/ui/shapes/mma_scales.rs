//! Scales that don't belong to blocks of the factor.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f8e4m3fn, n, n>, s: &Tensor<f32, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let s = s.partition_view([B, 4]);
    let mut y = y.partition_view_mut([B, B]);
    let (x, s) = (x.load_masked(y.index()), s.load_masked(y.index()));
    y.store_masked(mma_scaled(x, s, x, s.t(), Tile::zeros([B, B])));
}

fn main() {}
