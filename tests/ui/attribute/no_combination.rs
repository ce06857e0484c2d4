//! Combinations that break a condition are left out, but not all of them.

use tile::prelude::*;

#[tile_kernel(where(B * C > 100), instances(B = 4 | 8, C = 1 | 2, D = 1))]
fn kernel<const B: usize, const C: usize, const D: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B * C * D]);
    y.store_masked(Tile::zeros([B * C * D]));
}

fn main() {}
