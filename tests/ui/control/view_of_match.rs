//! Which tensor a view is of is known before a block decides anything.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    w: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let z = match i {
        0 => x.partition_view([BM, BN]),
        _ => w.partition_view([BM, BN]),
    };
    y.store_masked(z.load_masked([i, j]));
}

fn main() {}
