//! The returns of a function give one shape.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn reduced(x: Tile<f32, 2>, along: usize) -> Tile<f32, 2> {
        if along == 0 {
            return x.sum(0);
        }
        x.sum(1)
    }

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(x * reduced(x, y.tiles(0)));
    }
}

fn main() {}
