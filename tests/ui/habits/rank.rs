//! Extents in the type of a tile.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    type Row = Tile<f32, 1>;
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let a: Tile<f32, [B]> = x.load_masked(y.index());
    let b: Tile<f32, B> = a * 2.0;
    let c: Tile<f32, 2> = b;
    let d: Row = c;
    let e: f32;
    y.store_masked(d * e);
}

fn main() {}
