//! A function of another module whose own call is wrong: that is said there, and here what waits for it.

use tile::prelude::*;

mod a {
    use tile::prelude::*;

    #[tile_fn]
    pub fn near(x: Tile<f32, 2>) -> Tile<f32, 2> {
        crate::b::far(x)
    }
}

mod b {
    use tile::prelude::*;

    pub fn far(x: Tile<f32, 2>) -> Tile<f32, 2> {
        x
    }
}

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    y.store_masked(a::near(x.load_masked(y.index())));
}

fn main() {}
