//! Numbers of a type parameter are made by `of` and `as`, not by `From`.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T: Float>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([8]);
    let mut y = y.partition_view_mut([8]);
    y.store_masked(x.load_masked(y.index()) * T::from(2.0));
}

fn main() {}
