//! A const parameter is an extent or a `bool`.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: i32>(y: &mut Tensor<f32, n>) {

}

fn main() {}
