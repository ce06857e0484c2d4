//! How many arguments there may be is known.

use tile::prelude::*;

#[tile_kernel]
fn unbounded<const K: usize>(inputs: [&Tensor<f32, n>; K], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(inputs[0].partition_view([4]).load_masked(y.index()));
}

#[tile_kernel(where(K <= 8))]
fn beyond<const K: usize>(inputs: [&Tensor<f32, n>; K], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(inputs[8].partition_view([4]).load_masked(y.index()));
}

#[tile_kernel]
fn long(inputs: [&Tensor<f32, n>; 100], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(inputs[0].partition_view([4]).load_masked(y.index()));
}

#[tile_kernel]
fn optional(inputs: [Option<&Tensor<f32, n>>; 2], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::zeros([4]));
}

fn main() {}
