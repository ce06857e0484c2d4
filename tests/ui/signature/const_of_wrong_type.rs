//! A compile-time extent is a `usize`.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: i32>(y: &mut Tensor<f32, n>) {

}

fn main() {}
