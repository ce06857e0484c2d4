//! The result has the declared element type.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn halves(x: Tile<f32, 2>) -> Tile<f16, 2> {
        x * 0.5
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(halves(x).cast::<f32>());
    }
}

fn main() {}
