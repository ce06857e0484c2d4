//! A run-time size and an argument are two things.

use tile::prelude::*;

#[tile_kernel]
fn kernel(n: i32, y: &mut Tensor<f32, n>) {

}

fn main() {}
