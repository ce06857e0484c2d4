//! Methods, constructors and constants of a user's type.

use tile::prelude::*;

#[derive(TileStruct)]
struct State {
    sum: Tile<f32, 1>,
}

impl State {
    const SCALE: f32 = 2.0;

    fn new(sum: Tile<f32, 1>) -> State {
        State { sum }
    }

    fn update(self, x: Tile<f32, 1>) -> State {
        State { sum: self.sum + x }
    }
}

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let made = State::new(t);
    let state = State { sum: t };
    let updated = state.update(t);
    let given = State::update(state, t);
    let scaled = t * State::SCALE;
    y.store_masked(t);
}

fn main() {}
