//! As many bins as a run-time size says.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let counts = x.cast::<i32>().histogram(m);
    y.store_masked(x + counts.cast::<f32>().reshape([1, 8]));
}

fn main() {}
