//! An instance whose tile has several elements, where the kernel takes the one.

use tile::prelude::*;

#[tile_kernel(instances(BM = 4, BN = 8))]
fn kernel<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    let largest = x.max(1).item();
    y.store_masked(x / largest);
}

fn main() {}
