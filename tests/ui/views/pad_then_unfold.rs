//! Windows over an axis with indices that don't exist are more than one view.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n, 3>) {
    let x = x.pad([(1, 1)]).unfold(0, 3, 1).partition_view([B, 4]);
    let mut y = y.partition_view_mut([B, 4]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
