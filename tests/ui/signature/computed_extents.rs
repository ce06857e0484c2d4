//! Extents of which nothing says a size, or that no number shifts.

use tile::prelude::*;

#[tile_kernel]
fn rows_of_csr(starts: &Tensor<i32, { rows + 1 }>, y: &mut Tensor<f32, { rows * 4 }>) {
    let starts = starts.partition_view([1]);
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    y.store(Tile::full([4], starts.load_masked([i]).item() as f32));
}

#[tile_kernel]
fn powers<const LOG: usize>(y: &mut Tensor<f32, { 1 << LOG }>) {
    let mut y = y.partition_view_mut([1]);
    y.store(Tile::zeros([1]));
}

fn main() {}
