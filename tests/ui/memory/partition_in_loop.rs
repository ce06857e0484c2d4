//! Views are made once, at the top of a kernel.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    for _ in 0..4 {
        let mut y = y.partition_view_mut([BM, BN]);
        y.store_masked(Tile::zeros([BM, BN]));
    }
}

fn main() {}
