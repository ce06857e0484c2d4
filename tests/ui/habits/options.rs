//! Values that may be missing.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, bias: Option<&Tensor<f32, n>>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let mut best = None;
    best = Some(t);
    let larger = (n > 3).then(|| t);
    let Some(bias) = bias else { return };
    y.store_masked(t);
}

fn main() {}
