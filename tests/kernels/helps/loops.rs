//! Loops, exits and messages.

use super::super::devices;
use tile::prelude::*;

#[tile_kernel]
fn counted(a: usize, b: usize, n: usize, y: &mut Tensor<f32, 4>) {
    let (mut up, mut apart, mut down) = (0.0f32, 0.0f32, 0.0f32);
    for p in a..b {
        up = up * 10.0 + p as f32;
    }
    for p in (a..b).step_by(n) {
        apart = apart * 10.0 + p as f32;
    }
    for p in (a..b).rev() {
        down = down * 10.0 + p as f32;
    }
    let x = 5;
    let inside = if (a..b).contains(&x) { 1.0 } else { 0.0 };
    let mut y = y.partition_view_mut([1]).spanning([0]);
    for (i, sum) in [up, apart, down, inside].iter().enumerate() {
        y.at([i]).store(Tile::full([1], *sum));
    }
}

#[test]
fn ranges_count_up_apart_and_down() {
    for (device, name) in devices() {
        let mut y = Tensor::zeros(&device, [4]).expect("it fits");
        counted(2, 6, 2, &mut y).launch().expect("it runs");
        assert_eq!(y.to_vec().expect("it is read"), [2345.0, 24.0, 5432.0, 1.0], "{name}");
    }
}

/// Its messages are of what holds, or of none.
#[tile_kernel]
fn said(cap: Option<f32>, y: &mut Tensor<f32, 8>) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let condition = i < 2;
    let x = i as f32;
    let (a, b) = (x + 1.0, x);
    tile_assert!(x >= 0.0);
    tile_assert!(x >= 0.0, "x = {}", x);
    tile_assert!(condition, "x = {x}");
    tile_assert!(condition, "x = {}", x);
    tile_assert!(a != b, "{} and {}", a, b);
    let b = a;
    tile_assert!(a == b, "{} and {}", a, b);
    if i == 7 {
        tile_println!("x = {x}");
        tile_println!("x = {}", x);
    }
    if i == 1 {
        return;
    }
    y.store(Tile::full([4], cap.unwrap_or(1.0)));
    if let Some(cap) = cap {
        y.store(y.load() + cap);
    }
}

#[test]
fn a_block_says_what_it_finds_and_leaves() {
    for (device, name) in devices() {
        let mut y = Tensor::zeros(&device, [8]).expect("it fits");
        said(Some(3.0), &mut y).launch().expect("it runs");
        assert_eq!(y.to_vec().expect("it is read"), [6.0, 6.0, 6.0, 6.0, 0.0, 0.0, 0.0, 0.0], "{name}");
    }
}
