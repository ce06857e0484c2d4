//! A kernel returns nothing; it stores.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) -> f32 {
    0.0
}

fn main() {}
