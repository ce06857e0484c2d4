//! A kernel is a function.

use tile::prelude::*;

#[tile_kernel]
struct Kernel;

fn main() {}
