//! Bits as truth values.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<u8, n>, y: &mut Tensor<bool, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(x.bitcast::<bool>());
}

fn main() {}
