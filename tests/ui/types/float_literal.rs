//! A literal has the type of the tile.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<i32, m, n>, y: &mut Tensor<i32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    y.store_masked(x * 2.5);
}

fn main() {}
