//! A tile has the rank of the tensor that it cuts.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([BM]);
}

fn main() {}
