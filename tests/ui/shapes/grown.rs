//! A variable that a larger tile is assigned to begins as large.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    window: Option<i32>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let rows = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let columns = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
    let mut seen = columns < n as i32;
    if let Some(window) = window {
        seen &= columns > rows - window;
    }
    y.store_masked(select(seen, x.load_masked([i, j]), 0.0));
}

fn main() {}
