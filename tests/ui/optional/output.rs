//! Without the output nothing says what the grid is.

use tile::prelude::*;

#[tile_kernel]
fn alone(x: &Tensor<f32, n>, y: Option<&mut Tensor<f32, n>>) {
    if let Some(y) = y {
        let mut y = y.partition_view_mut([4]);
        y.store_masked(x.partition_view([4]).load_masked(y.index()));
    }
}

fn main() {}
