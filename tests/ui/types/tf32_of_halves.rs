//! TF32 of numbers that aren't f32.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f16, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let x = x.load_masked(y.index());
    y.store_masked(mma_tf32(x, x, Tile::zeros([B, B])));
}

fn main() {}
