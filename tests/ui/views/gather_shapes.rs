//! Index tiles broadcast to one shape.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize, const C: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, B>) {
    let mut y = y.partition_view_mut([B]);
    let rows = Tile::<i32, 1>::iota([B], 0);
    let columns = Tile::<i32, 1>::iota([C], 0);
    y.store_masked(x.gather([rows, columns]));
}

fn main() {}
