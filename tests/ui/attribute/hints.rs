//! Hints that a schedule can't have.

use tile::prelude::*;

#[tile_kernel(threads = 100, stages = n, occupancy = 2 * 20)]
fn doubled(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([64]);
    y.store_masked(x.partition_view([64]).load_masked(y.index()) * 2.0);
}

#[tile_kernel(threads = T, instances(T = 48 | 64))]
fn tripled<const T: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([64]);
    y.store_masked(x.partition_view([64]).load_masked(y.index()) * 3.0);
}

fn main() {}
