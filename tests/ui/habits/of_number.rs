//! `of` of a number that is no literal, on the host.

use tile::prelude::*;

fn main() {
    let x = 0.1f32;
    let _ = bf16::of(x);
    let _ = f16::of(2 * x as u32);
}
