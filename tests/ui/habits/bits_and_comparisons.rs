//! Operators on bits bind tighter than comparisons.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<bool, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let positive = t > 0;
    y.store_masked(t == 3 | positive);
}

fn main() {}
