//! A field that no kernel can hold.

use tile::prelude::*;

#[derive(TileStruct)]
struct State {
    sum: Tile<f32, 1>,
    names: Vec<String>,
}

fn main() {}
