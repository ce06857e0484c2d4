//! A kernel that names no instances has none to choose from.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::zeros([B]));
}

fn main() {
    let mut y = Tensor::zeros(&Device::cpu(), [3]).unwrap();
    kernel::best(&mut y).launch().unwrap();
}
