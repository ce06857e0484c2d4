//! What binds a name says whether it may be assigned to: arguments, sizes, constants, counters, patterns and parameters.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(s: f32, weights: [f32; 2], x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    const LIMIT: i32 = 3;
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    s += 1.0;
    n += 1;
    B += 1;
    LIMIT += 1;
    weights[0] = 2.0;
    for p in 0..n {
        p += 1;
    }
    match n {
        k => k += 1,
    }
    let doubled = |u: Tile<f32, 1>| {
        u *= 2.0;
        u
    };
    y.store_masked(doubled(t) * s);
}

#[tile_kernel(where(K <= 4))]
fn of_any_length<const K: usize>(mut weights: [f32; K], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    weights[0] = 2.0;
    y.store_masked(Tile::full([4], weights[0]));
}

fn main() {}
