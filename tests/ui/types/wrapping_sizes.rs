//! Sizes don't wrap.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let rest = n.wrapping_sub(5);
    let parts = n.wrapping_div(B);
    y.store_masked(Tile::full([B], (rest + parts) as f32));
}

fn main() {}
