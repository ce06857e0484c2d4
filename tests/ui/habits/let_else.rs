//! What a pattern can't be compared with.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let t = x.load_masked(y.index());
    let 4 = t.sum(0).sum(1) else {
        return;
    };
    let Some(last) = n.checked_sub(1) else { return };
    y.store_masked(t);
}

fn main() {}
