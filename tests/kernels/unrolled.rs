//! Loops that are unrolled: of which type their counters are, and what is known of these.

use super::check_exact;
use tile::prelude::*;

/// A counter that is converted where it indexes an array is an `i32`, as rustc has it.
#[tile_kernel]
fn of_converted_counters(labels: &Tensor<i32, 4>, x: &Tensor<f32, 4>, y: &mut Tensor<f32, 6>) {
    let labels = labels.partition_view([4]).load([0]);
    let x = x.partition_view([4]).load([0]);
    let parts = [0, 1, 2, 3].map(|i: usize| x.take(i, 0).item());
    let (mut before, mut first, mut halves) = (0.0, 0.0, 0.0);
    for i in 0..4 {
        let part = parts[i as usize];
        before += part * (i - 1) as f32;
        if i - 1 < 0 {
            first += part;
        }
        halves += part * ((i - 2) / 2) as f32;
    }
    let (mut later, mut found, mut moved) = (0.0, 0.0, 0.0);
    for i in 0..4 {
        later += parts[i as usize] * max(i - 1, 0) as f32;
        found += parts[i as usize] * select(labels == i, 1.0f32, 0.0).sum(0).item();
    }
    for i in 0..4 {
        moved += parts[i as usize] * x.shift(0, i - 1, 0.0).take(0, 0).item();
    }
    for d in -1..=1 {
        if d < 0 {
            first += 10.0 * parts[(d + 1) as usize];
        }
    }
    let sums = [before, first, halves, later, found, moved];
    y.partition_view_mut([6]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
}

#[test]
fn converted_counters_are_integers_with_a_sign() {
    check_exact!(of_converted_counters<>(labels: [3i32, 1, 1, 0], [4]; x: [1f32, 2.0, 3.0, 4.0], [4]) -> f32, [6] =>
        [10f32, 11.0, -1.0, 11.0, 9.0, 4.0]);
}

/// A variable of a loop that has the name of another.
#[tile_kernel]
fn of_the_loop(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 4>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let t = x.load([0]);
    let mut sum = t;
    for mut y in [t, t * 2.0, t * 4.0] {
        y += 1.0;
        sum += y;
        if sum.sum(0).item() > 40.0 {
            break;
        }
    }
    y.store(sum);
}

#[test]
fn a_variable_of_an_unrolled_loop_hides_another() {
    check_exact!(of_the_loop<>(x: [1f32, 2.0, 3.0, 4.0], [4]) -> f32, [4] => [6f32, 10.0, 14.0, 18.0]);
}
