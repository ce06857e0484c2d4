//! Of two literals nothing says which format they have.

use tile::prelude::*;

#[tile_kernel]
fn counted<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let positive = select(t > 0.0, 1, 0).sum(0).item();
    y.store_masked(t * positive as f32);
}

#[tile_kernel]
fn stored<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    y.store_masked(select(t > 0.0, 1, 0));
}

#[tile_kernel]
fn floats<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let positive = select(t > 0.0, 1.0, 0.0).sum(0).item();
    y.store_masked(t * positive as f32);
}

fn main() {}
