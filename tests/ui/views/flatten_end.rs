//! `flatten` joins both axes that it names, unlike a range.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, b, c, h, w>, y: &mut Tensor<f32, b, c, h, w>) {
    let x = x.flatten(2, 4).partition_view([1, 1, 64]);
    let mut y = y.flatten(2, 3).partition_view_mut([1, 1, 64]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
