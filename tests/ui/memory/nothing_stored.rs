//! An output that nothing is stored to stays as it is.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, z: &mut Tensor<f32, n>) {
    let x = x.partition_view([64]);
    let y = y.partition_view_mut([64]);
    let mut z = z.partition_view_mut([64]);
    let t = x.load_masked(y.index());
    z.store_masked(t + t);
}

fn main() {}
