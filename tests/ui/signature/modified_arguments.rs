//! Words and attributes at arguments that would mean nothing.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(
    ref scale: f32,
    shift @ _: f32,
    x: &'static Tensor<f32, n>,
    #[inline] given: Option<&'static Tensor<f32, n>>,
    xs: [&'static Tensor<f32, n>; 3],
    /// The result.
    #[allow(unused_mut)]
    mut y: &'_ mut Tensor<f32, n>,
) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.partition_view([B]).load_masked(y.index()) * scale + shift);
}

fn main() {}
