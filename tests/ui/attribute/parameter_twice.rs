//! The values of a parameter stand together.

use tile::prelude::*;

#[tile_kernel(instances(B = 4, B = 8))]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
