//! What a module with `#[tile_kernels]` imports is known, so nobody looks elsewhere for a misspelt name.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[tile_fn]
    fn near(x: Tile<f32, 2>) -> Tile<f32, 2> {
        expp(x)
    }

    #[tile_kernel]
    pub fn kernel<const B: usize>(x: &Tensor<f32, n, n>, y: &mut Tensor<f32, n, n>) {
        let x = x.partition_view([B, B]);
        let mut y = y.partition_view_mut([B, B]);
        y.store_masked(near(x.load_masked(y.index())));
    }
}

fn main() {}
