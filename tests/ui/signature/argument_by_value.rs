//! A tensor argument is a reference.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: Tensor<f32, n>) {

}

fn main() {}
