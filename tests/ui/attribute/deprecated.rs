//! A kernel that is deprecated is so whichever way it is launched, and not where it stands.

#![deny(deprecated, useless_deprecated)]

use tile::prelude::*;

#[tile_kernel(instances(B = 64))]
#[deprecated = "use `newer`"]
fn older<const B: usize>(y: &mut Tensor<f32, n>) {
    y.partition_view_mut([B]).store_masked(Tile::zeros([B]));
}

/// Its IR may be looked at.
#[tile_kernel]
#[deprecated]
fn unnamed<const B: usize>(y: &mut Tensor<f32, n>) {
    y.partition_view_mut([B]).store_masked(Tile::zeros([B]));
}

fn main() -> tile::Result<()> {
    let mut y = Tensor::zeros(&Device::cpu(), [1])?;
    older::<64>(&mut y).launch()?;
    println!("{} {}", older::IR, unnamed::ir());
    older::best(&mut y).launch()
}
