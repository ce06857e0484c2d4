//! Adapters that kernels don't have.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let mut tiles = [t, t];
    for tile in tiles.iter_mut() {
        *tile += 1.0;
    }
    let sum = tiles.sum();
    let largest = tiles.iter().max();
    let nothing = tiles.iter().skip(2).sum::<Tile<f32, 1>>();
    let of_an_axis = t.max(0).iter().max().unwrap();
    let all: Vec<_> = tiles.iter().map(|tile| *tile * 2.0).collect();
    let folded = (0..n).fold(0.0, |sum, k| sum + k as f32);
    let first = tiles.first();
    tiles.swap(0, 1);
    let same = tiles == [t, t];
    let windows = tiles.windows(2);
    y.store_masked(t);
}

fn main() {}
