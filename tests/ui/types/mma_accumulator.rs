//! bf16 products are summed in f32.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<bf16, m, n>, y: &mut Tensor<bf16, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    let acc: Tile<bf16, 2> = mma(x, x.t(), Tile::zeros([BM, BM]));
    let _ = acc;
    y.store_masked(x);
}

fn main() {}
