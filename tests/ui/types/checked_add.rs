//! There is no tile of Option.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<i32, m, n>, y: &mut Tensor<i32, m, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let t = x.load_masked(y.index());
    y.store_masked(t.checked_add(t));
}

fn main() {}
