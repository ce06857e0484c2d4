//! A name that is a macro of Rust, and the one of another library for `cat`.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let z = line(x);
    let w = concat([x, x], 0);
    y.store_masked(z + w);
}

fn main() {}
