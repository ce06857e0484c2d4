//! `index` gives one index per axis.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i] = y.index();
    y.store_masked(Tile::zeros([BM, BN]));
}

fn main() {}
