//! The attribute needs the module's code.

use tile::prelude::*;

#[tile_kernels]
struct Kernels;

#[tile_kernels(instances(B = 4))]
mod kernels {}

#[tile_fn(inline)]
fn function() {}

#[tile_fn]
struct Function;

fn main() {}
