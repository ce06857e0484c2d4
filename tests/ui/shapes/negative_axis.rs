//! Axes count from 0, and not from the end.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    let a = t.sum(-1);
    let b = t.max([0, -2]);
    let c = t.permute([-1, 0]);
    let d = t.sum(-3);
    let e = x.tiles(-1);
    y.store_masked(t);
}

fn main() {}
