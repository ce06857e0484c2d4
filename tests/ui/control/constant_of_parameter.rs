//! A const parameter has no value when the macro expands.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.load_masked([i, j]);
    const STEPS: usize = BM.pow(2);
    let mut z = x;
    for _ in 0..STEPS {
        z += x;
    }
    y.store_masked(z);
}

fn main() {}
