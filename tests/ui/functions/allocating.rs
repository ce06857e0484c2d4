//! Kernels have no collections.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let tile = x.partition_view([B]).load_masked(y.index());
    let mut all = Vec::new();
    all.push(tile);
    y.store_masked(all[0]);
}

fn main() {}
