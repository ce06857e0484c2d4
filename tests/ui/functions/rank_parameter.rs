//! A const parameter that is a parameter's rank follows from the argument's, everywhere alike.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn halves<const R: usize>(x: Tile<f32, R>, y: Tile<f32, R>) -> Tile<f32, R> {
        (x + y) * 0.5
    }

    #[tile_fn]
    fn scaled<T: Float, const R: usize, const N: usize>(x: Tile<T, R>) -> Tile<T, R> {
        x * T::of(N as f64)
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        let a = halves(x, x.reshape([BM * BN]));
        let b = halves::<1>(x, x);
        let c = scaled(x);
        y.store_masked(x);
    }
}

fn main() {}
