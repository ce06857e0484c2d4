//! A value has parts.

use tile::prelude::*;

#[derive(TileStruct)]
struct State;

fn main() {}
