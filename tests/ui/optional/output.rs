//! Without the output nothing says what the grid is, and a number is always there.

use tile::prelude::*;

#[tile_kernel]
fn alone(x: &Tensor<f32, n>, y: Option<&mut Tensor<f32, n>>) {
    if let Some(y) = y {
        let mut y = y.partition_view_mut([4]);
        y.store_masked(x.partition_view([4]).load_masked(y.index()));
    }
}

#[tile_kernel]
fn number(x: &Tensor<f32, n>, factor: Option<f32>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(x.partition_view([4]).load_masked(y.index()));
}

fn main() {}
