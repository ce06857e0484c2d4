//! `#[cfg]` on an `impl` whose functions and constants a kernel uses.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub struct State {
        x: Tile<f32, 1>,
    }

    #[cfg(not(any()))]
    #[tile_fn]
    impl State {
        const SCALE: f32 = 2.0;

        fn of(x: Tile<f32, 1>) -> State {
            State { x }
        }

        fn result(self) -> Tile<f32, 1> {
            self.x
        }
    }

    #[cfg(any())]
    #[tile_fn]
    impl State {
        const SCALE: f32 = 100.0;

        fn of(x: Tile<f32, 1>) -> State {
            State { x: x + 1.0 }
        }

        fn result(self) -> Tile<f32, 1> {
            self.x * 3.0
        }
    }

    #[tile_kernel]
    pub fn by_path<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(State::of(x.load_masked(y.index())).x);
    }

    #[tile_kernel]
    pub fn by_value<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(State { x: x.load_masked(y.index()) }.result());
    }

    #[tile_kernel]
    pub fn constant<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(x.load_masked(y.index()) * State::SCALE);
    }
}

fn main() {}
