//! A kernel is a plain function.

use tile::prelude::*;

#[tile_kernel]
async fn kernel(y: &mut Tensor<f32, n>) {}

fn main() {}
