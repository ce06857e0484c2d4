//! The attribute can't stand on a module that is a file.

use tile::prelude::*;

#[tile_kernels]
#[path = "on_file/kernels.rs"]
mod kernels;

fn main() {}
