//! A view that is stored to is declared `mut`, as rustc demands.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {}
