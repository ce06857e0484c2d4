//! A kernel with parameters that names no instances has none to choose from; one without them is one.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T: Number, const B: usize>(y: &mut Tensor<T, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::full([B], T::ONE));
}

#[tile_kernel]
fn whole(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([16]);
    y.store_masked(Tile::ones([16]));
}

fn main() {
    let mut y = Tensor::<f32>::zeros(&Device::cpu(), [3]).unwrap();
    kernel::best(&mut y).launch().unwrap();
    whole::best(&mut y).launch().unwrap();
}
