//! A condition that isn't one.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([B, 4]);
    let mut y = y.partition_view_mut([B, 4]);
    let t = x.load_masked(y.index());
    tile_assert!(t.sum(1), "sums");
    y.store_masked(t);
}

fn main() {}
