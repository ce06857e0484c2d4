//! What is gathered from is the tensor, not a view of its tiles, which often has its name.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, n>, at: &Tensor<i32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([8]);
    let at = at.partition_view([8]);
    let mut y = y.partition_view_mut([8]);
    y.store_masked(x.gather([at.load_masked(y.index())]));
}

fn main() {}
