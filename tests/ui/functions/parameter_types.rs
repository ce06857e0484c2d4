//! A function of kernels takes what a kernel can pass.

#![allow(unused)]

use tile::prelude::*;

#[tile_fn]
fn text(x: Tile<f32, 2>, name: String) -> Tile<f32, 2> {
    x
}

#[tile_fn]
fn changed(x: &mut Tile<f32, 2>, sums: &[f32]) {}

#[tile_fn]
fn maybe(x: Tile<f32, 2>, y: Option<f32>) {}

#[tile_fn]
fn stepped(mut f: impl FnMut(f32) -> f32) -> f32 {
    f(1.0) + f(2.0)
}

#[tile_fn]
fn once<F>(f: F) -> f32
where
    F: FnOnce(f32) -> f32,
{
    f(1.0)
}

#[tile_fn]
fn pointer(f: &dyn Fn(f32) -> f32, g: fn(f32) -> f32) -> f32 {
    f(g(1.0))
}

fn main() {}
