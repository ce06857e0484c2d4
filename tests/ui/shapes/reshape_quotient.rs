//! Two 4-bit numbers of a byte: half of an extent twice is the extent only where it is even; groups of equal size.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const K: usize>(x: &Tensor<u8, n>, y: &mut Tensor<u8, { 2 * n }>) {
    let x = x.partition_view([K / 2]);
    let mut y = y.partition_view_mut([K]);
    let pair = x.load_masked(y.index());
    y.store_masked(stack([pair & 15, pair >> 4], 1).reshape([K]));
}

#[tile_kernel]
fn groups<const E: usize, const G: usize>(x: &Tensor<f32, E>, y: &mut Tensor<f32, G>) {
    let scores = x.partition_view([E]).load([0]).reshape([G, E / G]);
    y.partition_view_mut([G]).store(scores.max(1).squeeze(1));
}

/// Quarters of an extent are more than halves of a part of it.
#[tile_kernel]
fn quarters<const K: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([K / 2]);
    let mut y = y.partition_view_mut([K / 2]);
    let pairs = x.load_masked(y.index()).reshape([K / 4, 2]);
    y.store_masked((pairs - pairs.max(1)).reshape([K / 2]));
}

fn main() {}
