//! The length of a tile and of an array.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    let rows = t.len();
    let parts = [t, t];
    y.store_masked(parts[0] * parts.len() as f32);
}

fn main() {}
