//! Elements of tiles, views and arguments.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    let first = t[0];
    let tile = x[0];
    let column = t.select(1, 0);
    y.store_masked(t);
}

fn main() {}
