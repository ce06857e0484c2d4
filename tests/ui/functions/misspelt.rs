//! A call of a function that there isn't: near one that there is, of another library, and of no name that is known.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(expp(x) + dot(x, x) + frobnicated(x));
}

fn main() {}
