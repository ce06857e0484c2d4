//! Texts, panics and conditions of compilation.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, mode: i32, y: &mut Tensor<f32, n>) {
    const { assert!(B % 4 == 0) };
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let name = "relu";
    let letter = 'a';
    let text = format!("{mode}");
    let fast = cfg!(debug_assertions);
    let t = match mode {
        0 => t,
        _ => unreachable!("there is no other mode"),
    };
    y.store_masked(t);
}

fn main() {}
