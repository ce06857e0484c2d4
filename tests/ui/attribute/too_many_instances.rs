//! Every combination is compiled, so there is an end to them.

use tile::prelude::*;

#[tile_kernel(instances(B = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8, C = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8, D = 1 | 2 | 3 | 4 | 5))]
fn kernel<const B: usize, const C: usize, const D: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B * C * D]);
    y.store_masked(Tile::zeros([B * C * D]));
}

fn main() {}
