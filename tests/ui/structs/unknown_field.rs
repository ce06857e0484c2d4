//! A struct has the fields that it was made with.

use tile::prelude::*;

#[derive(TileStruct)]
struct State {
    max: Tile<f32, 2>,
    sum: Tile<f32, 2>,
}

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    let mut state = State { max: x.max(1), sum: x };
    state.sum += x;
    y.store_masked(state.total);
}

fn main() {}
