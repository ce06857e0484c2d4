//! A function is called with what it is declared for.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn normalized<T: Float>(x: Tile<T, 2>) -> Tile<T, 2> {
        x / x.sum(1)
    }

    #[tile_fn]
    fn bits<T>(x: Tile<T, 2>) -> Tile<T, 2>
    where
        T: Int,
    {
        x & x
    }

    #[tile_kernel]
    pub fn integers<const BM: usize, const BN: usize>(x: &Tensor<i32, m, n>, y: &mut Tensor<i32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(normalized(x) + normalized::<i32>(x));
    }

    #[tile_kernel]
    pub fn numbers<T: Number, const BM: usize, const BN: usize>(
        x: &Tensor<T, m, n>,
        y: &mut Tensor<T, m, n>,
    ) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(bits(x));
    }
}

fn main() {}
