//! Windows over a margin are cut and loaded with a mask, or gathered.

use tile::prelude::*;

#[tile_kernel]
fn unmasked<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.pad([(1, 1)]).unfold(0, 3, 1).partition_view([B, 4]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load([i, 0]).sum(1).squeeze(1));
}

#[tile_kernel]
fn gathered<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.shift(0, 1).unfold(0, 3, 1).select(2, 0);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.gather([Tile::<i32, 1>::iota([B], 0)]));
}

#[tile_kernel]
fn rank<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.shift(0, 1).unfold(0, 3, 1);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.gather([Tile::<i32, 1>::iota([B], 0)]) + x.gather((y.load_masked(), 0)));
}

#[tile_kernel]
fn uncut<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.pad([(1, 1)]).unfold(0, 3, 1);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load_masked([i, 0]).sum(1).squeeze(1));
}

fn main() {}
