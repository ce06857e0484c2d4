//! Arrays of values aren't in memory, so nothing refers to a part of one.

use tile::prelude::*;

#[tile_kernel]
fn middle(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let t = x.load_masked(y.index());
    let parts = [t, t * 2.0, t * 3.0];
    let mut sum = t;
    for part in &parts[1..3] {
        sum += *part;
    }
    y.store_masked(sum);
}

fn main() {}
