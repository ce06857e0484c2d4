//! A literal beside a value is of its format; alone, and as an argument of a function, it is Rust's, which has none of bf16.

use tile::prelude::*;

#[tile_fn]
fn scaled(x: Tile<bf16, 1>, by: bf16) -> Tile<bf16, 1> {
    x * by * 2.0
}

#[tile_fn]
fn positive(x: Tile<bf16, 1>) -> Tile<bf16, 1> {
    scaled(max(x, 0.0), 0.5)
}

#[tile_fn]
fn counted(x: Tile<bf16, 1>, counts: Tile<i32, 1>) -> Tile<bf16, 1> {
    x * (counts * 2.0).cast::<bf16>()
}

fn main() {}
