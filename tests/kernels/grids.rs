//! Grids: where a block is, and how many there are.

use super::check_exact;
use tile::prelude::*;

/// What each block is called, in base 100.
#[tile_kernel]
fn places<const B: usize>(y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([B, 3]);
    let place = block_id(0) * 1_000_000 + block_id(1) * 10_000 + block_count(0) * 100 + block_count(1);
    y.store_masked(Tile::full([B, 3], place as f32));
}

#[test]
fn blocks_know_their_place() {
    let (m, n) = (5, 7);
    let expected: Vec<f32> = (0..m * n)
        .map(|at| {
            let (i, j) = (at / n / 2, at % n / 3);
            (i * 1_000_000 + j * 10_000 + 3 * 100 + 3) as f32
        })
        .collect();
    check_exact!(places<B = 2>() -> f32, [m, n] => expected);
}

/// Row `block_id` of x, which the grid is known to have.
#[tile_kernel]
fn rows(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 4]);
    let mut y = y.partition_view_mut([1, 4]);
    y.store(x.load([block_id(0), block_id(1)]));
}

#[test]
fn a_block_id_is_bounded() {
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    check_exact!(rows<>(x: &values, [3, 8]) -> f32, [3, 8] => values.clone());
}
