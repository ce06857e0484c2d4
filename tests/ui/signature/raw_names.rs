//! Names that are words of Rust aren't names of kernels.

use tile::prelude::*;

#[tile_kernel]
fn kernel(r#in: &Tensor<f32, r#type>, y: &mut Tensor<f32, r#type>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(r#in.partition_view([4]).load_masked(y.index()));
}

#[tile_fn]
fn r#move(x: Tile<f32, 1>) -> Tile<f32, 1> {
    x
}

fn main() {}
