//! Integers have no NaN to propagate.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let x = x.cast::<i32>();
    y.store_masked(x.reduce_maximum(1).cast::<f32>().broadcast([4, 8]));
}

fn main() {}
