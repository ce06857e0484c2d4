//! A closure that uses a tile from outside.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let row = x.sum(0);
    y.store_masked(scan(x, 1, 0.0, |a, b| a + b * row));
}

fn main() {}
