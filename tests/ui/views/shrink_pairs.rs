//! One range per axis.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.shrink([(0, 4)]).partition_view([4, B]);
    let mut y = y.partition_view_mut([4, B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
