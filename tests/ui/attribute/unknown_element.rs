//! An element parameter is bound to an element type.

use tile::prelude::*;

#[tile_kernel(instances(T = string, B = 4))]
fn kernel<T: Float, const B: usize>(y: &mut Tensor<T, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
