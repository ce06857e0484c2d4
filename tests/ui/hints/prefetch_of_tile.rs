//! A tile is near already.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let t = x.load_masked(y.index());
    t.prefetch();
    y.store_masked(t);
}

fn main() {}
