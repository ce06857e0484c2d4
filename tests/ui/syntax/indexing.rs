//! A tile's elements have no addresses.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    let first = x[0];
    y.store_masked(x + first);
}

#[tile_kernel]
fn by_counter<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let mut count = 0.0;
    for i in 0..B {
        if t[i] > 3.0 {
            count += 1.0;
        }
    }
    for i in 0..100 {
        count += t[i];
    }
    y.store_masked(t * count);
}

fn main() {}
