//! Fields have names.

use tile::prelude::*;

#[derive(TileStruct)]
struct State(Tile<f32, 1>);

fn main() {}
