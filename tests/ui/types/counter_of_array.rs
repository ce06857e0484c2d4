//! Counters that count indices are `usize` wherever they stand.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut best = Tile::full([B], f32::NEG_INFINITY);
    let mut k = Tile::<i32, 1>::zeros([B]);
    for a in [0, 1, 2] {
        for c in [0, 1, 2] {
            let v = x.load_masked([i + a * 3 + c]);
            k = select(v > best, a * 3 + c, k);
            best = max(best, v);
        }
    }
    y.store_masked(k);
}

fn main() {}
