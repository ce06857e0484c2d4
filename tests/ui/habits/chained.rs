//! Methods of Rust's own collections.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    let sum = t.iter().map(|x| x * 2.0).sum();
    let first = t.get(0);
    y.store_masked(t.clip(0.0, 1.0));
}

fn main() {}
