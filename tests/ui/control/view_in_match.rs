//! A view is made once, whatever a block decides.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    w: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    match i {
        0 => {
            let z = y.load_masked();
            y.store_masked(z);
        }
        _ => y.store_masked(w.partition_view([BM, BN]).load_masked([i, j])),
    }
}

fn main() {}
