//! Reductions keep their axes, so that one element is a tile still.

use tile::prelude::*;

#[tile_kernel]
fn decided(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([64]);
    let t = x.partition_view([64]).load_masked(y.index());
    if (t > 0.5).any(0) {
        y.store_masked(t);
    }
}

#[tile_kernel]
fn added_up(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1]);
    let [i] = y.index();
    let mut sum = 0.0;
    for j in 0..x.tiles(1) {
        sum += x.load_masked([i, j]).sum(1);
    }
    y.store(Tile::full([1], sum));
}

#[tile_kernel]
fn of_another_rank(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m>) {
    let x = x.partition_view([1, 64]);
    let mut y = y.partition_view_mut([1]);
    let [i] = y.index();
    y.store(y.load() + x.load_masked([i, 0]).sum(1));
}

#[tile_kernel]
fn looked_up(x: &Tensor<f32, n>, places: &Tensor<i32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([64]);
    let place = places.partition_view([64]).load_masked(y.index());
    y.store_masked(x[place]);
}

fn main() {}
