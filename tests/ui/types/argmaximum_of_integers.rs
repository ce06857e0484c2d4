//! Integers have no NaN whose position there could be.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<i32, m, 8>, y: &mut Tensor<i32, m, 1>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 1]);
    y.store_masked(x.load_masked(y.index()).argmaximum(1));
}

fn main() {}
