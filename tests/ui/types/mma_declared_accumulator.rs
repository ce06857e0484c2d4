//! An accumulator whose format is written has one that there is for the factors'.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<bf16, n, n>, y: &mut Tensor<bf16, n, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let x = x.load_masked(y.index());
    y.store_masked(mma(x, x.t(), Tile::<bf16, 2>::zeros([B, B])));
}

fn main() {}
