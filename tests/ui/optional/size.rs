//! Without the argument nothing says what its extents are.

use tile::prelude::*;

#[tile_kernel]
fn kernel(bias: Option<&Tensor<f32, k>>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut t = Tile::full([4], k as f32);
    if let Some(bias) = bias {
        t += bias.partition_view([4]).load_masked(y.index());
    }
    y.store_masked(t);
}

fn main() {}
