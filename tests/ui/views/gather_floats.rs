//! Indices are integers.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m>, at: &Tensor<f32, k>, y: &mut Tensor<f32, k>) {
    let at = at.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.gather([at.load_masked(y.index())]));
}

fn main() {}
