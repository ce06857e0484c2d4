//! Views of tensors are made before loops and branches, so what they are made of is known there.

use tile::prelude::*;

#[tile_kernel]
fn selected<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, B>) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for p in 0..m {
        sum += x.select(0, p).gather([Tile::<i32, 1>::iota([B], 0)]);
    }
    y.store_masked(sum);
}

#[tile_kernel]
fn after_a_return<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>, last: usize) {
    let mut y = y.partition_view_mut([1, B]);
    if m > last {
        return;
    }
    let [i, j] = y.index();
    let x = x.select(0, i).partition_view([B]);
    y.store_masked(x.load_masked([j]).reshape([1, B]));
}

#[tile_kernel]
fn cut_twice<const B: usize>(y: &mut Tensor<f32, n>, all: bool) {
    if all {
        let mut y = y.partition_view_mut([B]);
        y.store_masked(Tile::ones([B]));
    } else {
        let mut y = y.partition_view_mut([1]);
        y.store_masked(Tile::ones([1]));
    }
}

fn main() {}
