//! A function outside of a module of kernels that calls itself.

use tile::prelude::*;

#[tile_fn]
fn powered(x: Tile<f32, 2>, exponent: usize) -> Tile<f32, 2> {
    if exponent == 0 {
        return x;
    }
    powered(x, exponent - 1) * x
}

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(powered(x, 3));
}

fn main() {}
