//! One index per axis.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, rows: &Tensor<i32, k>, y: &mut Tensor<f32, k>) {
    let rows = rows.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.gather([rows.load_masked(y.index())]));
}

fn main() {}
