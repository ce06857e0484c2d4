//! `where` of a kernel bounds type parameters.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T, const BM: usize, const BN: usize>(x: &Tensor<T, m, n>, y: &mut Tensor<T, m, n>)
where
    T: Copy,
    Tile<T, 2>: Copy,
{
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(x);
}

fn main() {}
