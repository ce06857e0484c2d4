//! An argument has a name.

use tile::prelude::*;

#[tile_kernel]
fn kernel((a, b): (f32, f32), y: &mut Tensor<f32, n>) {

}

fn main() {}
