//! A mistake in a function is at its token, and names the call.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn sum_of(a: Tile<f32, 2>, b: Tile<f32, 2>) -> Tile<f32, 2> {
        a + b
    }

    #[tile_fn]
    fn twice(a: Tile<f32, 2>, b: Tile<f32, 2>) -> Tile<f32, 2> {
        sum_of(a, b) * 2.0
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(twice(x, Tile::zeros([BN, BM])));
    }
}

fn main() {}
