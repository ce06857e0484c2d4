//! A closure of an iterator is called where a value is asked for, and kernels call it where it is written.

use tile::prelude::*;

#[tile_kernel(grid = [1])]
fn taken(y: &mut Tensor<i32, 2>) {
    let y = y.atomic_view();
    let total = [10, 20, 30].iter().map(|&v| y.fetch_add([0], v, Relaxed, DeviceScope)).take(1).sum::<i32>();
    y.fetch_add([1], total, Relaxed, DeviceScope);
}

#[tile_kernel]
fn reversed(y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([4]);
    let values = [1, 2].iter();
    let printed = values.map(|&v| {
        tile_println!("{v}");
        v
    });
    for v in printed.rev() {
        y.store_masked(Tile::full([4], v));
    }
}

#[tile_fn]
fn checked(x: f32) -> f32 {
    tile_assert!(x > 0.0, "{x}");
    x
}

#[tile_kernel]
fn beside(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut t = x.load_masked(y.index());
    for (k, v) in (0..2).zip([1.0, -1.0].into_iter().map(|v| checked(v))) {
        t += v * k as f32;
    }
    y.store_masked(t);
}

#[tile_kernel(grid = [1])]
fn in_turn(y: &mut Tensor<i32, 2>) {
    let y = y.atomic_view();
    let add = |k: usize, v| y.fetch_add([k], v, Relaxed, DeviceScope);
    [1, 2].iter().map(|&v| add(0, v)).fold(0, |a, v| a + add(1, v));
    [1, 2].iter().map(|&v| add(0, v)).map(|v| add(1, v)).sum::<i32>();
}

fn main() {}
