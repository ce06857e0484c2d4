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

/// Conditions and indices that follow from a counter.
#[expect(
    clippy::nonminimal_bool,
    clippy::absurd_extreme_comparisons,
    clippy::unnecessary_cast,
    reason = "what is known of each form is the test"
)]
#[tile_kernel]
fn of_known_conditions(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 9>) {
    const FROM: i32 = 1;
    let x = x.partition_view([4]).load([0]);
    let parts = [0, 1, 2, 3].map(|i: usize| x.take(i, 0).item());
    let (mut before, mut after, mut joined) = (0.0, 0.0, 0.0);
    for i in 0..4 {
        if i > 0 {
            before += parts[i - 1];
        }
        if i + 1 < 4 {
            after += parts[i + 1];
        }
        if i == 3 || i > 0 && parts[i - 1] > 1.5 {
            joined += parts[i];
        } else if !(i <= 0) {
            joined -= 10.0 * parts[i - 1];
        }
    }
    let (mut mixed, mut below, mut above) = (0.0, 0.0, parts[FROM as usize]);
    for i in 0..4 {
        mixed += parts[i ^ 1] * parts[i & 1] + parts[i >> 1] * parts[i | 2];
    }
    for i in 0..4usize {
        below += parts[i.saturating_sub(1)];
    }
    for i in 0..3 {
        above += parts[(i as i32 + 1) as usize];
    }
    let (mut left, mut chosen) = (0.0, 0.0);
    for i in 0..4 {
        chosen = chosen * 2.0 + if i == 0 { parts[3] } else { parts[i - 1] };
        if i == 0 {
            continue;
        }
        if i == 3 {
            break;
        }
        left += parts[i - 1];
        for k in 0..4 {
            match k {
                _ if k >= 2 => left += parts[k - 2] * 10.0,
                _ => {}
            }
        }
    }
    let (two, mut later) = (parts[1] as u32, 0.0);
    for i in 0..4 {
        if i > 0 {
            later += parts[(i - 1) as usize];
        }
        later += (i * two) as f32;
    }
    let sums = [before, after, joined, mixed, below, above, left, chosen, later];
    y.partition_view_mut([9]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
}

#[test]
fn conditions_on_counters_choose_what_is_indexed() {
    check_exact!(of_known_conditions<>(x: [1f32, 2.0, 3.0, 4.0], [4]) -> f32, [9] =>
        [6f32, 9.0, -3.0, 35.0, 7.0, 11.0, 63.0, 43.0, 18.0]);
}

#[tile_fn]
fn halved(x: Tile<f32, 1>) -> [Tile<f32, 1>; 2] {
    [x, x * 0.5]
}

/// Ends that say their type, and an array that a function gives.
#[tile_kernel]
fn of_typed_ends(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 6>) {
    const TAPS: i32 = 3;
    const LEAST: i8 = -128;
    let x = x.partition_view([4]).load([0]);
    let parts = [0, 1, 2, 3].map(|i: usize| x.take(i, 0).item());
    let mut sum = 0.0;
    for i in 0..4i32 {
        sum += parts[i as usize] * (i - 1) as f32;
    }
    let (mut by_suffix, mut by_constant) = (Tile::zeros([4]), Tile::zeros([4]));
    for d in 0..3i32 {
        by_suffix += x.shift(0, d - 1, 0.0);
    }
    for d in 0..TAPS {
        by_constant += x.shift(0, d - 1, 0.0) * d as f32;
    }
    let squares = (0..4u32).map(|k| k * k).sum::<u32>();
    let mut given = Tile::zeros([4]);
    for t in halved(x) {
        given += t;
    }
    let last = |t: Tile<f32, 1>| t.take(3, 0).item();
    let sums = [sum, last(by_suffix), last(by_constant), squares as f32, last(given), (-LEAST) as f32];
    y.partition_view_mut([6]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
}

#[test]
fn ends_that_say_their_type_are_known() {
    check_exact!(of_typed_ends<>(x: [1f32, 2.0, 3.0, 4.0], [4]) -> f32, [6] => [10f32, 7.0, 10.0, 14.0, 6.0, -128.0]);
}

/// Indices that functions and methods make of a counter.
#[tile_kernel]
fn neighbours(x: &Tensor<i32, 3>, y: &mut Tensor<i32, 3>) {
    let x = x.partition_view([3]).load([0]);
    let parts = [x, x * 2, x * 3];
    let mut sum = Tile::zeros([3]);
    for i in 0..3 {
        sum = sum * 10 + parts[min(i + 1, 2)] + parts[max(i, 1) - 1] * 100;
    }
    for i in -1..2i32 {
        sum = sum * 10 + parts[i.clamp(0, 1) as usize] + parts[min(max(i, 0) as u32, 1) as usize];
    }
    y.partition_view_mut([3]).store(sum);
}

#[test]
fn what_functions_make_of_a_counter_is_known() {
    let one = |x: i32| {
        let parts = [x, x * 2, x * 3];
        let first =
            (0..3usize).fold(0, |sum, i| sum * 10 + parts[(i + 1).min(2)] + parts[i.max(1) - 1] * 100);
        (-1..2i32).fold(first, |sum, i| sum * 10 + parts[i.clamp(0, 1) as usize] * 2)
    };
    check_exact!(neighbours<>(x: [1, 5, -7], [3]) -> i32, [3] => [1, 5, -7].map(one));
}
