//! A tensor names its element and its extents.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor, y: &mut Tensor<f32, n>) {

}

fn main() {}
