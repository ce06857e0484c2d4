//! Constants that the macro cannot compute are refused where they are used.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    const SIZE: usize = size_of::<f32>();

    #[tile_kernel]
    pub fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let x = x.partition_view([BM, BN]);
        let mut y = y.partition_view_mut([BM, BN]);
        let x = x.load_masked(y.index());
        y.store_masked(x + Tile::zeros([SIZE, 1]));
    }
}

fn main() {}
