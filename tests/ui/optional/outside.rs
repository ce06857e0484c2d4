//! An optional argument is a tensor where a pattern says that it is given.

use tile::prelude::*;

#[tile_kernel]
fn kernel(bias: Option<&Tensor<f32, n>>, y: &mut Tensor<f32, n>) {
    let bias = bias.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    y.store_masked(bias.load_masked(y.index()));
}

fn main() {}
