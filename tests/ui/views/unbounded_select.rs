//! Nothing is known of the index that an axis was selected at.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, n>, row: usize) {
    let x = x.select(0, row).partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store(x.load(y.index()));
}

fn main() {}
