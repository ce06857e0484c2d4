//! A pattern is a condition of `if`, and of nothing else.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BIASED: bool>(bias: Option<&Tensor<f32, n>>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut t = Tile::zeros([4]);
    while BIASED && let Some(bias) = bias {
        t += bias.partition_view([4]).load_masked(y.index());
    }
    y.store_masked(t);
}

fn main() {}
