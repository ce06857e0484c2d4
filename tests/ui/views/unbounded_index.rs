//! Nothing is known of an argument's value.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>, s: usize) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    let [i, _] = y.index();
    y.store(x.load([i, s + 1]));
}

fn main() {}
