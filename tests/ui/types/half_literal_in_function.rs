//! What a function's numbers are, only its types say, and rustc has no literals of bf16.

use tile::prelude::*;

#[tile_fn]
fn doubled(x: Tile<bf16, 1>) -> Tile<bf16, 1> {
    x * 2.0
}

#[tile_fn]
fn positive(x: Tile<bf16, 1>) -> Tile<bf16, 1> {
    max(x, 0.0)
}

fn main() {}
