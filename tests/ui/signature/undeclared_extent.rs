//! An upper-case extent is a const parameter.

use tile::prelude::*;

#[tile_kernel]
fn kernel(y: &mut Tensor<f32, BLOCK>) {

}

fn main() {}
