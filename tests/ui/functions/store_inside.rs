//! An error of the verifier in a function names the call too.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn mask<const N: usize>(x: Tile<f32, 2>) -> Tile<f32, 2> {
        x * Tile::zeros([N, 0])
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(mask::<BM>(x));
    }
}

fn main() {}
