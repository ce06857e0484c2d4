//! What a kernel's author forbids is refused in its body, which has allowances of its own.

use tile::prelude::*;

#[tile_kernel]
#[forbid(unused)]
fn kernel<const B: usize>(scale: f32, y: &mut Tensor<f32, n>) {
    y.partition_view_mut([B]).store_masked(Tile::zeros([B]));
}

fn main() -> tile::Result<()> {
    let mut y = Tensor::zeros(&Device::cpu(), [1])?;
    kernel::<64>(1.0, &mut y).launch()
}
