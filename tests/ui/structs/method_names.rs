//! Methods that functions of kernels can't be.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct State {
        sum: Tile<f32, 1>,
    }

    #[tile_fn]
    impl State {
        fn store(&mut self, x: Tile<f32, 1>) {
            self.sum = x;
        }

        fn boxed(self: Box<Self>) -> Self {
            State { sum: self.sum }
        }
    }
}

#[derive(TileStruct)]
struct Alone {
    sum: Tile<f32, 1>,
}

#[tile_fn]
impl Alone {
    fn sum(self) -> Tile<f32, 1> {
        self.sum
    }
}

fn main() {}
