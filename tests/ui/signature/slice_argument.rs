//! Memory comes as tensors.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &[f32], y: &mut Tensor<f32, n>) {

}

fn main() {}
