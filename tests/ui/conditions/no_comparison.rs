//! A condition compares extents, or names a `bool`.

use tile::prelude::*;

#[tile_kernel(where(BM, BM % 2, m == 2.0, BM % 4 == 0 || BN, !(m + 1), CAUSAL == BM, bias || bias.len() > 2))]
fn kernel<const BM: usize, const BN: usize, const CAUSAL: bool>(
    x: &Tensor<f32, m, n>,
    bias: Option<&Tensor<f32, n>>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(x);
}

fn main() {}
