//! Floats don't overflow.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let (sum, _) = x.overflowing_add(x);
    y.store_masked(sum);
}

fn main() {}
