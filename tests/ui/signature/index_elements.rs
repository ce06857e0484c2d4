//! `usize` has no fixed width in memory.

use tile::prelude::*;

#[tile_kernel]
fn kernel(y: &mut Tensor<usize, n>) {

}

fn main() {}
