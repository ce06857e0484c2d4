//! A tile whose shape differs from the view's tiles in axes of extent 1.

use tile::prelude::*;

#[tile_kernel]
fn sums<const B: usize>(x: &Tensor<f32, m, 128>, y: &mut Tensor<f32, m>) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.partition_view([B, 128]).load_masked([i, 0]).sum(1));
}

#[tile_kernel]
fn column<const B: usize>(x: &Tensor<f32, m>, y: &mut Tensor<f32, m, 1>) {
    let mut y = y.partition_view_mut([B, 1]);
    let [i, _] = y.index();
    y.store_masked(x.partition_view([B]).load_masked([i]));
}

#[tile_kernel]
fn turned<const B: usize>(x: &Tensor<f32, m, 1>, y: &mut Tensor<f32, 1, m>) {
    let mut y = y.partition_view_mut([1, B]);
    let [_, i] = y.index();
    y.store_masked(x.partition_view([B, 1]).load_masked([i, 0]));
}

fn main() {}
