//! Views of tensors are made once, at the top of a kernel.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, B>) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for p in 0..m {
        sum += x.select(0, p).gather([Tile::<i32, 1>::iota([B], 0)]);
    }
    y.store_masked(sum);
}

fn main() {}
