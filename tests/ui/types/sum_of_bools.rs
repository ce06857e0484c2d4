//! A reduction of a format that it does not take.
use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<bool, m, 8>, y: &mut Tensor<bool, m, 1>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 1]);
    let [i, _] = y.index();
    let x = x.load_masked([i, 0]);
    y.store_masked(x.sum(1));
}

fn main() {}
