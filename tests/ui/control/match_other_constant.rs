//! A constant of another module would fit everything, if it were taken for a variable.

use tile::prelude::*;

const LIMIT: usize = 2;

#[tile_kernel]
fn kernel(y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([1]);
    let [i] = y.index();
    let t = match i {
        LIMIT => 1.0,
        _ => 0.0,
    };
    y.store_masked(Tile::full([1], t));
}

fn main() {}
