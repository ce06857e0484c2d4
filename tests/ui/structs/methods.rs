//! Methods that kernels can't call as they are.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct State {
        sum: Tile<f32, 1>,
        turns: i32,
    }

    #[tile_fn]
    impl State {
        fn update(&mut self, x: Tile<f32, 1>) {
            self.sum += x;
        }

        fn rank(self) -> Self {
            State { sum: self.sum + Tile::zeros([3]), ..self }
        }
    }

    #[tile_kernel]
    fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        let mut state = State { sum: t, turns: 0 };
        let fixed = state;
        fixed.update(t);
        state.update();
        state.update(1.0);
        state.updated(t);
        State::update(&mut state, t);
        let step = |x: Tile<f32, 1>| state.update(x);
        y.store_masked(state.rank().sum);
    }
}

fn main() {}
