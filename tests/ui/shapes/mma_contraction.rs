//! The contracted axes of `mma` are equal.

use tile::prelude::*;

#[tile_kernel]
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BN, BK]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

fn main() {}
