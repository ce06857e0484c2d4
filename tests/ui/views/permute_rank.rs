//! A permutation names every axis once.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, n, m>) {
    let x = x.permute([1, 1]).partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
