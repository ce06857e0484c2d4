//! Numbers of formats that Rust has no literals of are written as those that it has, or made by `of`.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<bf16, n>, y: &mut Tensor<bf16, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let a = x * bf16::from_f32(2.0);
    let b = x * 2;
    y.store_masked(x);
}

fn main() {}
