//! A function of another module without the attribute can't be called.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    y.store_masked(helpers::double(x));
}

mod helpers {
    use tile::prelude::*;

    pub fn double(x: Tile<f32, 2>) -> Tile<f32, 2> {
        x + x
    }
}

fn main() {}
