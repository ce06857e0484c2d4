//! What loops and branches do at their edges, and copies of shapes that no tile divides. The numbering is that of
//! the list of behaviours that peers disagree on.

use super::check_exact;
use tile::prelude::*;

/// Halves until below 1; a block that begins below 1 has no turn.
#[tile_kernel]
fn halve_while_large<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let mut value = x.load_masked(y.index());
    while value.item() >= 1.0 {
        value *= 0.5;
    }
    y.store_masked(value);
}

#[test]
fn case_25_while_false_at_entry_has_no_turn() {
    check_exact!(halve_while_large<B = 1>(x: [0.75f32, 5.0, 1.0], [3]) -> f32, [3] => [0.75f32, 0.625, 0.5]);
}

/// The first power of two above the element, by leaving a loop.
#[tile_kernel]
fn power_above<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let limit = x.load_masked(y.index()).item();
    let mut power = 1;
    let found = loop {
        if power > limit {
            break power;
        }
        power = power * 2;
    };
    y.store_masked(Tile::full([1], found));
}

#[test]
fn case_25_loop_gives_its_value_at_break() {
    check_exact!(power_above<B = 1>(x: [0, 1, 5, 1000], [4]) -> i32, [4] => [1, 2, 8, 1024]);
}

/// A loop from 5 to 3 doesn't run, so the tile beyond the tensor that it would load isn't missed.
#[tile_kernel]
#[allow(clippy::reversed_empty_ranges, reason = "that it doesn't run is the test")]
fn empty_loop<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::full([B], 7.0);
    for i in 5..3 {
        sum += x.load_masked([i + 1000]);
    }
    y.store_masked(sum);
}

#[test]
fn case_25_an_empty_loop_does_nothing() {
    check_exact!(empty_loop<B = 2>(x: [1f32, 2.0], [2]) -> f32, [2] => [7f32, 7.0]);
}

/// The counter goes from −2 to 3.
#[tile_kernel]
fn negative_range<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut seen = x.load_masked(y.index());
    for i in -2..4 {
        seen = seen * 10 + i;
    }
    y.store_masked(seen);
}

#[test]
fn case_25_ranges_may_be_negative() {
    let by_hand = (-2..4).fold(1, |seen, i| seen * 10 + i);
    check_exact!(negative_range<B = 1>(x: [1], [1]) -> i32, [1] => [by_hand]);
}

#[tile_kernel]
fn chosen_branch<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let tile = x.load_masked([i]);
    let mut result = tile;
    if i == 1 {
        result = -tile;
    } else if i == 2 {
        result = tile * 10.0;
    }
    y.store_masked(result);
}

#[test]
fn case_25_a_tile_is_carried_through_branches() {
    let x = [1f32, 2.0, 3.0, 4.0, 5.0];
    check_exact!(chosen_branch<B = 2>(x: x, [5]) -> f32, [5] => [1f32, 2.0, -3.0, -4.0, 50.0]);
}

#[tile_kernel]
fn counted<const B: usize>(y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(Tile::iota([B], 0) + (i * B) as i32);
}

#[tile_kernel]
fn copied<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    y.store_masked(x.load_masked(y.index()));
}

#[tile_kernel]
fn copied_line<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()));
}

#[test]
fn case_25_shapes_that_no_tile_divides() {
    check_exact!(counted<B = 128>() -> i32, [1000] => 0..1000);
    let line: Vec<f32> = (0..997).map(|i| i as f32).collect();
    check_exact!(copied_line<B = 128>(x: line.clone(), [997]) -> f32, [997] => line.clone());
    for (m, n) in [(63, 63), (192, 134)] {
        let x: Vec<f32> = (0..m * n).map(|i| (i % 8191) as f32).collect();
        check_exact!(copied<B = 64>(x: x.clone(), [m, n]) -> f32, [m, n] => x.clone());
    }
}
