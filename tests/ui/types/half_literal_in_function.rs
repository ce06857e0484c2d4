//! A literal is of the format of the value beside it, or of the parameter that it is passed to; integers have none beside them.

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
