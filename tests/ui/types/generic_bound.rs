//! A function needs its bound on a generic element.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T: Number, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(exp(x));
}

fn main() {}
