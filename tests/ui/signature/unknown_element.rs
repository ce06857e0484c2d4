//! An element is a number format.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<String, n>, y: &mut Tensor<f32, n>) {

}

fn main() {}
