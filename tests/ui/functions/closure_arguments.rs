//! A closure fits what the function declares, wherever it is called.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn applied(x: Tile<f32, 2>, f: impl Fn(Tile<f32, 2>) -> Tile<f32, 2>) -> Tile<f32, 2> {
        f(x) + f(x * 2.0)
    }

    #[tile_fn]
    fn double(x: Tile<f32, 2>) -> Tile<f32, 2> {
        x + x
    }

    #[tile_kernel]
    fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        let count = applied(x, |a, b| a + b);
        let shape = applied(x, |a| a + Tile::zeros([BN, BM]));
        let tile = applied(x, x);
        let function = applied(x, double);
        y.store_masked(applied(x, |a| a.sum(0).reshape([BN])));
    }
}

fn main() {}
