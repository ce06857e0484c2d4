//! Functions of two modules that call each other: rustc can't resolve the circle.

use tile::prelude::*;

mod a {
    use tile::prelude::*;

    #[tile_fn]
    pub fn ping(x: Tile<f32, 2>) -> Tile<f32, 2> {
        super::b::pong(x)
    }
}

mod b {
    use tile::prelude::*;

    #[tile_fn]
    pub fn pong(x: Tile<f32, 2>) -> Tile<f32, 2> {
        super::a::ping(x)
    }
}

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(a::ping(x));
}

fn main() {}
