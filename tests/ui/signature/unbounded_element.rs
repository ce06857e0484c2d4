//! A generic element has a bound that says what it can do.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T>(y: &mut Tensor<T, n>) {

}

fn main() {}
