//! Counters that are indices are `usize`, and tiles of positions are not.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let v = x.load_masked([i]);
    let mut k = Tile::<i32, 1>::zeros([B]);
    for a in [0, 1, 2] {
        k = select(v.gt(0.0), a * 3 + i, k);
    }
    y.store_masked(k);
}

#[tile_kernel]
fn unrolled<const B: usize, const C: usize>(x: &Tensor<f32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let v = x.load_masked(y.index());
    let mut k = Tile::<i32, 1>::zeros([B]);
    let mut best = v;
    for a in [0, 1, 2] {
        for c in 0..C {
            k = select(v.gt(best), a * 3 + c, k);
            best = max(best, v);
        }
    }
    y.store_masked(k);
}

fn main() {}
