//! Writing at indices, which blocks do by way of an atomic view.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<i32, n>, v: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let v = v.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.scatter([x.load_masked(y.index())], v.load_masked(y.index()));
}

#[tile_kernel(grid = [n.div_ceil(B)])]
fn without_view<const B: usize>(x: &Tensor<i32, n>, v: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let v = v.partition_view([B]);
    let i = block_id(0);
    y.scatter_add([x.load_masked([i])], v.load_masked([i]));
}

fn main() {}
