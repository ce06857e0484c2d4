//! A store without a mask has an index whose range is known.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1, 64]).spanning([1]);
    let [i, _] = y.index();
    let at = x.load_masked([i, 0]).sum(1).item() as usize;
    y.at([at]).store(x.load_masked([i, 0]));
}

fn main() {}
