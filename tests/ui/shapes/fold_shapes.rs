//! Tiles of two shapes folded at once.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let row = x.sum(0);
    let (a, _) = reduce((x, row), 1, (0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    y.store_masked(a);
}

fn main() {}
