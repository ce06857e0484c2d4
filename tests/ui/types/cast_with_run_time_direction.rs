//! A rounding direction that isn't written out.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f16, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let direction = Rounding::Up;
    y.store_masked(x.cast_with::<f16>(direction));
}

fn main() {}
