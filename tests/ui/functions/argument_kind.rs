//! A scalar parameter takes no tile.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn squared(x: f32) -> f32 {
        x * x
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(x * squared(x.sum(0)));
    }
}

fn main() {}
