//! A value of a parameter is named once.

use tile::prelude::*;

#[tile_kernel(instances(B = 4 | 8 | 4))]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
