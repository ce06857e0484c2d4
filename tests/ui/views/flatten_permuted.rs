//! The axes of a transpose don't follow each other in memory.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, k>) {
    let x = x.t().flatten(0, 1).partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
