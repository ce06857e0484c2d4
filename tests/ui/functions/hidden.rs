//! A variable with the name of a function.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    let t = x.load_masked(y.index());
    let max = t.max(1);
    y.store_masked(t * max(max, 0.0));
}

fn main() {}
