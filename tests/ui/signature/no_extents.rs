//! A tensor of a kernel has extents.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32>, y: &mut Tensor<f32, n>) {

}

fn main() {}
