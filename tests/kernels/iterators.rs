//! Iterators over arrays of values and constants, which are unrolled.

// An array has an element, and kernels read `max`, `min` and `reduce` of its iterators with `unwrap` alone.
#![allow(clippy::unwrap_used)]

use super::check_exact;
use super::whole::check_kernel;
use tile::prelude::*;

/// Adapters that say which values there are, and in which order.
#[tile_kernel]
fn adapters<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let mut tiles = [t, t * 2.0, t + 1.0];
    let weights = [0.5, 2.0, 4.0];
    let mut sum = Tile::zeros([B]);
    for (k, tile) in tiles.iter().enumerate().skip(1) {
        sum += *tile * k as f32;
    }
    for (tile, &weight) in tiles.into_iter().rev().zip(&weights) {
        sum = sum * 2.0 + tile * weight;
    }
    for (k, weight) in (1..3).zip(weights) {
        tiles[k] += weight;
    }
    for &tile in &tiles {
        if (tile - tile.abs()).sum(0).item() > 0.0 {
            continue;
        }
        sum += tile;
    }
    for weight in weights.iter().copied().chain([1.0]).step_by(3).take(5) {
        sum += weight;
    }
    y.store_masked(sum);
}

#[test]
fn loops_run_over_iterators() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    let expected = x.map(|t| {
        let mut tiles = [t, t * 2.0, t + 1.0];
        let weights = [0.5, 2.0, 4.0];
        let mut sum = 0.0;
        for (k, tile) in tiles.iter().enumerate().skip(1) {
            sum += *tile * k as f32;
        }
        for (tile, &weight) in tiles.into_iter().rev().zip(&weights) {
            sum = sum * 2.0 + tile * weight;
        }
        for (k, weight) in (1..3).zip(weights) {
            tiles[k] += weight;
        }
        sum + tiles.iter().sum::<f32>() + 0.5 + 1.0
    });
    check_exact!(adapters<B = 2>(x: x, [5]) -> f32, [5] => expected);
}

#[tile_kernels]
mod sums {
    use tile::prelude::*;

    const WEIGHTS: [f32; 3] = [0.5, 2.0, -4.0];

    #[tile_fn]
    fn mean_of<T: Float>(values: [T; 2], tiles: [Tile<T, 1>; 2]) -> Tile<T, 1> {
        tiles.iter().zip(values).map(|(&tile, value)| tile * value).sum::<Tile<T, 1>>()
            / values.iter().sum::<T>()
    }

    #[tile_fn]
    fn rounded(tiles: [Tile<f32, 1>; 3]) -> Tile<f32, 1> {
        let largest = tiles.iter().copied().reduce(|a, b| max(a, b)).unwrap();
        (largest - tiles.iter().min().expect("there are tiles")).floor()
    }

    #[tile_kernel]
    pub(crate) fn totals<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        let tiles = WEIGHTS.map(|weight| t * weight);
        let sum: Tile<f32, 1> = tiles.iter().sum();
        let product = tiles.into_iter().rev().product::<Tile<f32, 1>>();
        let largest = (tiles.iter().max()).unwrap() - WEIGHTS.iter().max().expect("there are weights");
        let heaviest = WEIGHTS.iter().copied().reduce(|a, b| if a > b { a } else { b }).unwrap();
        let extents = [B, n].iter().sum::<usize>() + (1..4).max().unwrap();
        let part = mean_of([1.0, 3.0], [sum, product]) + rounded(tiles);
        y.store_masked(largest + heaviest + part + extents as f32);
    }

    /// Integers wrap in sums, too.
    #[tile_kernel]
    pub(crate) fn wrapped_totals<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        let first = t.take(0, 0).item();
        let total: i32 = [i32::MAX, first, 7].iter().sum();
        y.store_masked(
            [t, t + 1].iter().product::<Tile<i32, 1>>() + total + [first, 3].iter().product::<i32>(),
        );
    }
}
use sums::{totals, wrapped_totals};

#[test]
fn iterators_have_totals() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    let expected = x.map(|t| {
        let tiles = [0.5, 2.0, -4.0].map(|weight| t * weight);
        let [sum, product] = [tiles.iter().sum::<f32>(), tiles.iter().rev().product()];
        let [largest, smallest] = [f32::max, f32::min].map(|f| tiles.into_iter().reduce(f).unwrap());
        let extents = (2 + x.len() + 3) as f32;
        largest - 2.0 + 2.0 + (sum + product * 3.0) / 4.0 + (largest - smallest).floor() + extents
    });
    check_exact!(totals<B = 2>(x: x, [5]) -> f32, [5] => expected);
}

#[test]
fn totals_wrap() {
    let x = [5, i32::MAX, -3, 1_000_000];
    let expected = [0, 1, 2, 3].map(|at: usize| {
        let (t, first) = (x[at], x[at / 2 * 2]);
        let total = i32::MAX.wrapping_add(first).wrapping_add(7);
        t.wrapping_mul(t.wrapping_add(1)).wrapping_add(total).wrapping_add(first.wrapping_mul(3))
    });
    check_exact!(wrapped_totals<B = 2>(x: x, [4]) -> i32, [4] => expected);
}

#[tile_kernels]
mod filters {
    use tile::prelude::*;

    /// A polynomial's coefficients, the highest power first.
    const COEFFICIENTS: [f32; 4] = [0.5, -1.0, 2.0, 3.0];
    const TAPS: [(i32, usize); 2] = [(3, 1), (-2, 0)];

    #[tile_fn]
    fn polynomial(x: Tile<f32, 1>) -> Tile<f32, 1> {
        COEFFICIENTS.iter().fold(x - x, |sum, &c| sum * x + c)
    }

    #[tile_fn]
    fn weighted<const K: usize>(tiles: [Tile<f32, 1>; K], weight: f32) -> Tile<f32, 1> {
        let mut sum = tiles[0] - tiles[0];
        for (k, tile) in tiles.iter().enumerate() {
            sum += *tile * (weight + k as f32);
        }
        sum
    }

    #[tile_kernel]
    pub(crate) fn filter<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        const STEPS: [usize; 2] = [B, 2 * B];
        const BITS: u32 = 7u32 * 3;
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        let mut sum = polynomial(t);
        for k in 0..COEFFICIENTS.len() {
            sum += COEFFICIENTS[k] * const { 2.0 * 2.0 };
        }
        for (tap, at) in TAPS {
            sum += tap as f32 * STEPS[at] as f32;
        }
        y.store_masked(weighted([sum, t].map(|tile| tile + BITS as f32), 2.0));
    }

    /// Integers wrap where a closure computes them, too.
    #[tile_kernel]
    pub(crate) fn wrapped<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        let total = [i32::MAX, 2].into_iter().fold(0, |a, b| a + b);
        let any = (1..4).fold(false, |any, k| any | (k == 3));
        let [a, b] = [1, 2].map(|k| k + total);
        y.store_masked(if any { t + a * b } else { t });
    }
}
use filters::{filter, wrapped};

#[test]
fn constants_are_arrays() {
    let x = [1.0f32, -2.0, 0.5];
    let expected = x.map(|x| {
        let sum = ((0.5 * x - 1.0) * x + 2.0) * x + 3.0 + 4.5 * 4.0 + 3.0 * 4.0 - 2.0 * 2.0;
        (sum + 21.0) * 2.0 + (x + 21.0) * 3.0
    });
    check_exact!(filter<B = 2>(x: x, [3]) -> f32, [3] => expected);
}

#[test]
fn closures_of_adapters_wrap() {
    let total = i32::MAX.wrapping_add(2);
    let product = total.wrapping_add(1).wrapping_mul(total.wrapping_add(2));
    check_exact!(wrapped<B = 2>(x: [0, 5, -7], [3]) -> i32, [3] => [0, 5, -7].map(|x: i32| x.wrapping_add(product)));
}

/// Closures with effects: those of an array's `map` are called at once, and those of an iterator's where all it gives is
/// taken in its order.
#[tile_kernel]
fn drawn(x: &mut Tensor<i32, 3>, y: &mut Tensor<i32, 4>) {
    let x = x.atomic_view();
    let mut y = y.partition_view_mut([4]);
    let first = [10, 20, 30].map(|v| x.fetch_add([0], v, Relaxed, DeviceScope)).iter().take(2).sum::<i32>();
    let second = [10, 20, 30].iter().map(|&v| x.fetch_add([1], v, Relaxed, DeviceScope)).sum::<i32>();
    let third = [1, 2]
        .iter()
        .copied()
        .map(|v| x.fetch_add([2], v, Relaxed, DeviceScope))
        .enumerate()
        .fold(7, |a, (k, b)| a * 10 + b * (k as i32 + 1));
    let fourth = (1..3).map(|v| v * 2).fold(0, |a, v| a * 10 + x.fetch_add([2], v, Relaxed, DeviceScope));
    y.store_masked(cat([first, second, third, fourth].map(|v| Tile::full([1], v)), 0));
}

#[test]
fn closures_with_effects_are_called_once_for_each_value() {
    for (device, label) in super::devices() {
        let mut x = Tensor::<i32>::zeros(&device, [3]).unwrap();
        let mut y = Tensor::<i32>::zeros(&device, [4]).unwrap();
        drawn(&mut x, &mut y).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [60, 60, 9], "{label}");
        assert_eq!(y.to_vec().unwrap(), [10, 40, 702, 35], "{label}");
    }
}

/// The ends of a range are computed before what it is asked for.
#[tile_kernel]
fn in_order(counts: &mut Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let counts = counts.atomic_view();
    let inside = (counts.fetch_add([0], 1, Relaxed, DeviceScope)
        ..=counts.fetch_add([0], 1, Relaxed, DeviceScope) + 1)
        .contains(&counts.fetch_add([0], 1, Relaxed, DeviceScope));
    y.partition_view_mut([1]).store(Tile::full([1], inside as i32));
}

#[test]
fn the_ends_of_a_range_come_before_what_it_contains() {
    check_kernel!(in_order<>(
        output counts: (vec![0i32], [1] => [3i32], 0.0), output y: (vec![0i32], [1] => [1i32], 0.0),
    ));
}

/// A closure that counts what is done to make it.
#[tile_kernel]
fn made_once(y: &mut Tensor<i32, 1>) {
    let mut k = 1;
    let twice = [1, 2, 3].map({
        k += 1;
        |value| value * 2
    });
    y.partition_view_mut([1]).store(Tile::full([1], k * 100 + twice.iter().sum::<i32>()));
}

#[test]
fn what_gives_a_closure_is_computed_once() {
    check_exact!(made_once<>() -> i32, [1] => [212]);
}

/// Iterators of iterators, which are the same, in a kernel and in a function.
#[tile_fn]
fn doubled(parts: [f32; 3]) -> f32 {
    #[expect(clippy::useless_conversion, reason = "it is the test")]
    let sum: f32 = parts.iter().into_iter().skip(1).sum();
    sum * 2.0
}

#[expect(clippy::useless_conversion, reason = "it is the test")]
#[tile_kernel]
fn twice_iterators(x: &Tensor<f32, 3>, y: &mut Tensor<f32, 3>) {
    let x = x.partition_view([3]).load([0]);
    let parts = [0, 1, 2].map(|i: usize| x.take(i, 0).item());
    let sum = parts.iter().into_iter().sum::<f32>();
    let product: f32 = parts.iter().rev().into_iter().product();
    let sums = [sum, product, doubled(parts)].map(|sum| Tile::full([1], sum));
    y.partition_view_mut([3]).store(cat(sums, 0));
}

#[test]
fn an_iterator_is_one_of_itself() {
    check_exact!(twice_iterators<>(x: [2f32, 3.0, 5.0], [3]) -> f32, [3] => [10f32, 30.0, 16.0]);
}
