//! What a function of kernels calls of other modules is found before anything else is known of it.

use tile::prelude::*;

#[tile_fn]
fn near(x: Tile<f32, 2>) -> Tile<f32, 2> {
    expp(x)
}

#[tile_fn]
fn foreign(x: Tile<f32, 2>) -> Tile<f32, 2> {
    std::convert::identity(x)
}

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    y.store_masked(foreign(x.load_masked(y.index())));
}

fn main() {}
