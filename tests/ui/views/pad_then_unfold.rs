//! Windows over a margin are cut and loaded with a mask; a margin of windows is none.

use tile::prelude::*;

#[tile_kernel]
fn unmasked<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.pad([(1, 1)]).unfold(0, 3, 1).partition_view([B, 4]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load([i, 0]).sum(1).squeeze(1));
}

#[tile_kernel]
fn padded<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.shift(0, 1).unfold(0, 3, 1).pad([(1, 1), (0, 0)]).partition_view([B, 4]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load_masked([i, 0]).sum(1).squeeze(1));
}

#[tile_kernel]
fn uncut<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.pad([(1, 1)]).unfold(0, 3, 1);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load_masked([i, 0]).sum(1).squeeze(1));
}

fn main() {}
