//! Options whose values stand in parentheses.

use tile::prelude::*;

#[tile_kernel(instances = 4)]
fn number<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

#[tile_kernel(where n % 4 == 0)]
fn condition<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
