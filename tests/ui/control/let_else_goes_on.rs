//! An `else` of `let` leaves.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, bias: Option<&Tensor<f32, n>>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let Some(bias) = bias else {
        y.store_masked(t);
    };
    y.store_masked(t + bias.partition_view([B]).load_masked(y.index()));
}

fn main() {}
