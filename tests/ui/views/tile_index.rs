//! A tile's index is numbers from 0 on, one for each axis.

use tile::prelude::*;

#[tile_kernel]
fn last(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let [i, _] = y.index();
    y.store_masked(x.load_masked([i, -1]));
}

#[tile_kernel]
fn first(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let i = y.index();
    y.store_masked(x.load_masked([i, 0]));
}

fn main() {}
