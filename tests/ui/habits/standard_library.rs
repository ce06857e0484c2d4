//! Functions of Rust's library, by their paths.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let a = std::cmp::max(1, 2);
    let b = f32::max(x, 0.0);
    let c = f32::exp(1.0);
    let d = core::mem::swap(x, x);
    let e = i32::from_str_radix("2", 10);
    let f = f32::from(2);
    y.store_masked(x);
}

fn main() {}
