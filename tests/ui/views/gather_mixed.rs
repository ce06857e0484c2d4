//! An array has elements of one type; a tuple mixes tiles and numbers.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, at: &Tensor<i32, k>, y: &mut Tensor<f32, k>) {
    let at = at.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    y.store_masked(x.gather([0, at.load_masked(y.index())]));
}

fn main() {}
