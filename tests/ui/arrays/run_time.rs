//! Which argument is used is decided when the macro expands.

use tile::prelude::*;

#[tile_kernel]
fn by_block(inputs: [&Tensor<f32, n>; 4], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    y.store_masked(inputs[i % 4].partition_view([4]).load_masked([i]));
}

#[tile_kernel]
fn by_counter(inputs: [&Tensor<f32, n>; 4], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut sum = Tile::zeros([4]);
    for i in 0..n {
        sum += inputs[i].partition_view([4]).load_masked(y.index());
    }
    y.store_masked(sum);
}

fn main() {}
