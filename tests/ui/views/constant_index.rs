//! Four tiles of 16 have indices 0 to 3.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, 64>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([16]);
    let mut y = y.partition_view_mut([16]);
    y.store(x.load([4]));
}

fn main() {}
