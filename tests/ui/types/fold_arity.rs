//! A closure that gives one number for two tiles.

use tile::prelude::*;

#[tile_kernel]
fn kernel(x: &Tensor<f32, m, 8>, y: &mut Tensor<f32, m, 8>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([4, 8]);
    let x = x.load_masked(y.index());
    let i = Tile::<i32, 2>::iota([4, 8], 1);
    let (a, _) = scan((x, i), 1, (0.0, 0), |(a, _), (b, _)| a + b);
    y.store_masked(a);
}

fn main() {}
