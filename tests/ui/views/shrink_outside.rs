//! A range ends beyond its axis.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, 8, n>, y: &mut Tensor<f32, 4, n>) {
    let x = x.shrink([(6, 10), (0, n)]).partition_view([4, B]);
    let mut y = y.partition_view_mut([4, B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
