//! Which variant a value is would be known at run time only.

use tile::prelude::*;

#[derive(TileStruct)]
enum State {
    Empty,
    Full(Tile<f32, 1>),
}

fn main() {}
