//! `T::of` of a number that isn't a literal.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T: Number, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, k: i32) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let s = T::of(k);
    y.store_masked(x * s);
}

fn main() {}
