//! An ordinary function of Rust, in scope and by its path.

use tile::prelude::*;

fn plain(x: Tile<f32, 2>) -> Tile<f32, 2> {
    x + x
}

mod helpers {
    use tile::prelude::*;

    pub fn doubled(x: Tile<f32, 2>) -> Tile<f32, 2> {
        x + x
    }
}

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(plain(x) + helpers::doubled(x));
}

fn main() {}
