//! A tile has an index per axis.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, _] = y.index();
    x.prefetch([i]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
