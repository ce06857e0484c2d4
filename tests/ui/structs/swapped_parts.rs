//! The two sides of an assignment have the same parts.

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
    let (mut a, mut b) = (x, x);
    (a, b) = (b, a, x);
    state.sum = a + b;
    y.store_masked(state.sum);
}

fn main() {}
