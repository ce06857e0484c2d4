//! An instance binds every parameter.

use tile::prelude::*;

#[tile_kernel(instances(A = 4))]
fn kernel<const A: usize, const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([A]);
    y.store_masked(Tile::full([A], 0.0) + Tile::zeros([B]).sum(0));
}

#[tile_kernel(instances())]
fn unnamed<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::ones([B]));
}

fn main() {}
