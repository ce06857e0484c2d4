//! A circle of calls is named.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn ping(x: Tile<f32, 2>) -> Tile<f32, 2> {
        pong(x)
    }

    #[tile_fn]
    fn pong(x: Tile<f32, 2>) -> Tile<f32, 2> {
        last(x) + 1.0
    }

    #[tile_fn]
    fn last(x: Tile<f32, 2>) -> Tile<f32, 2> {
        ping(x)
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(ping(x));
    }
}

fn main() {}
