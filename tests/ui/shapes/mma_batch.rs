//! The factors of a product count different numbers of matrices.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, 4, n, n>, w: &Tensor<f32, 3, n, n>, y: &mut Tensor<f32, 4, n, n>) {
    let x = x.partition_view([4, B, B]);
    let w = w.partition_view([3, B, B]);
    let mut y = y.partition_view_mut([4, B, B]);
    let (x, w) = (x.load_masked(y.index()), w.load_masked(y.index()));
    y.store_masked(mma(x, w, Tile::zeros([4, B, B])));
}

fn main() {}
