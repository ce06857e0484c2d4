//! An error of rustc's is at the token of the body.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    let parts: [Tile<f32, 2>; 3] = [x, x.sum(1)];
    y.store_masked(parts[0] / parts[1]);
}

fn main() {}
