//! A view has no more axes than a tensor.

use tile::prelude::*;

#[tile_kernel]
fn windows(x: &Tensor<f32, b, c, d, h, w>, y: &mut Tensor<f32, b, c, d, h, w>) {
    let x = x.pad([(0, 0), (0, 0), (1, 1), (1, 1), (1, 1)]).unfold(2, 3, 1).unfold(3, 3, 1);
    let mut y = y.partition_view_mut([1, 1, 1, 1, 8]);
    y.store_masked(x.select(6, 0).select(5, 0).partition_view([1, 1, 1, 1, 8]).load_masked(y.index()));
}

#[tile_kernel]
fn halves(x: &Tensor<f32, a, b, c, d, e, f>, y: &mut Tensor<f32, a, b, c, d, e, f>) {
    let x = x.unflatten(0, [a / 2, 2]).flatten(0, 1).partition_view([1, 1, 1, 1, 1, 8]);
    let mut y = y.partition_view_mut([1, 1, 1, 1, 1, 8]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
