//! What blocks span is said before a view is used.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1, 64]);
    y.store(x.load(y.index()));
    let mut y = y.spanning([1]);
    y.at([0]).store(x.load(y.index()));
}

fn main() {}
