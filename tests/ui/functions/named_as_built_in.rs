//! A function of kernels with the name of one that every kernel has.

use tile::prelude::*;

mod math {
    use tile::prelude::*;

    #[tile_fn]
    pub fn round(x: Tile<f32, 1>) -> Tile<f32, 1> {
        x * 100.0
    }
}

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()));
}

fn main() {}
