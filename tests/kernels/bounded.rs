//! Loops to a const parameter that a condition bounds, whose counter is an axis, a start, a distance, an index of an array
//! or says how a tensor is moved: they are unrolled to the bound, and an instance has the turns below its parameter.

use super::{check_exact, devices, numbers};
use tile::prelude::*;

/// A causal convolution: each tap is the tensor, moved.
#[tile_kernel(where(W >= 1, W <= 5))]
fn causal<const B: usize, const W: usize>(x: &Tensor<f64, n>, w: &Tensor<f64, W>, y: &mut Tensor<f64, n>) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for k in 0..W {
        let x = x.pad([(W - 1, 0)]).shrink([(k, n + k)]).partition_view([B]);
        sum += x.load_masked(y.index()) * w.gather([k]);
    }
    y.store_masked(sum);
}

fn causally(x: &[f64], w: &[f64]) -> Vec<f64> {
    let one = |i: usize| {
        let first = w.len() - 1;
        let taps = w.iter().enumerate().filter(|(k, _)| i + k >= first);
        taps.map(|(k, w)| x[i + k - first] * w).fold(0.0, |sum, product| sum + product)
    };
    (0..x.len()).map(one).collect()
}

#[test]
fn a_tensor_is_moved_by_the_counter_of_a_loop_to_a_parameter() {
    let whole =
        |count, seed| -> Vec<f64> { numbers::<f64>(count, seed).iter().map(|x| (x * 8.0).round()).collect() };
    let x = whole(21, 1);
    let w = whole(5, 2);
    check_exact!(causal<B = 8, W = 4>(x: x.clone(), [21]; w: w[..4].to_vec(), [4]) -> f64, [21] => causally(&x, &w[..4]));
    check_exact!(causal<B = 8, W = 5>(x: x.clone(), [21]; w: w.clone(), [5]) -> f64, [21] => causally(&x, &w));
    check_exact!(causal<B = 8, W = 1>(x: x.clone(), [21]; w: w[..1].to_vec(), [1]) -> f64, [21] => causally(&x, &w[..1]));
}

/// Every kind of place that takes a number which is known, in loops that go forwards, backwards, in steps and to the end.
#[tile_kernel(where(W <= 4))]
fn parts<const W: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([4 * W]);
    let mut y = y.partition_view_mut([4 * W]);
    let x = x.load_masked(y.index());
    let weights = [1, 10, 100, 1000, 10_000];
    let mut sum = Tile::zeros([4]);
    // Each turn has the digits of a place of its own.
    for k in (0..W).rev() {
        sum = sum * 3 + x.extract([k * 4], [4]);
    }
    for k in (1..W).step_by(2) {
        sum = sum * 3 + x.roll(0, k).extract([0], [4]);
    }
    for k in (0..W + 1).step_by(2).rev() {
        sum = sum * 2 + weights[k];
    }
    for k in 0..=W {
        sum = sum * 2 - weights[k];
    }
    y.store_masked(x + sum.repeat([W]));
}

fn part_sums(x: &[i32], width: usize) -> Vec<i32> {
    let block = 4 * width;
    let at = |first: usize, i: usize| x.get(first + i).copied().unwrap_or(0);
    let one = |place: usize| {
        let (first, i) = (place / block * block, place % 4);
        let mut sum = 0i32;
        for k in (0..width).rev() {
            sum = sum * 3 + at(first, k * 4 + i);
        }
        for k in (1..width).step_by(2) {
            sum = sum * 3 + at(first, (i + block - k) % block);
        }
        for k in (0..width + 1).step_by(2).rev() {
            sum = sum * 2 + 10i32.pow(k as u32);
        }
        for k in 0..=width {
            sum = sum * 2 - 10i32.pow(k as u32);
        }
        x[place] + sum
    };
    (0..x.len()).map(one).collect()
}

#[test]
fn parts_are_taken_in_turns_below_a_parameter() {
    let x: Vec<i32> = (0..40).map(|i| i * i % 17 - 8).collect();
    check_exact!(parts<W = 4>(x: x.clone(), [40]) -> i32, [40] => part_sums(&x, 4));
    check_exact!(parts<W = 3>(x: x.clone(), [40]) -> i32, [40] => part_sums(&x, 3));
    check_exact!(parts<W = 1>(x: x.clone(), [40]) -> i32, [40] => part_sums(&x, 1));
}

/// A loop that may have no turn at all, with an exit.
#[tile_kernel(where(LAST <= 6))]
fn until<const LAST: usize>(x: &Tensor<i32, 8>, limit: i32, y: &mut Tensor<i32, 8>) {
    let mut y = y.partition_view_mut([8]);
    let x = x.partition_view([8]).load([0]);
    let mut sum = Tile::zeros([8]);
    for k in 2..LAST {
        if k as i32 > limit {
            break;
        }
        sum = sum * 2 + x.shift(0, k, 9);
    }
    y.store(sum);
}

#[test]
fn turns_that_an_instance_lacks_end_nothing() {
    let shifted =
        |x: &[i32], k: usize| -> Vec<i32> { (0..8).map(|i| if i < k { 9 } else { x[i - k] }).collect() };
    let x = [3, 1, 4, 1, 5, 9, 2, 6];
    for (device, label) in devices() {
        let input = Tensor::from_slice(&device, &x, [8]).unwrap();
        let mut y = Tensor::zeros(&device, [8]).unwrap();
        for (last, limit) in [(0, 9), (2, 9), (3, 9), (6, 9), (6, 3), (6, 1)] {
            match last {
                0 => until::<0>(&input, limit, &mut y).launch().unwrap(),
                2 => until::<2>(&input, limit, &mut y).launch().unwrap(),
                3 => until::<3>(&input, limit, &mut y).launch().unwrap(),
                _ => until::<6>(&input, limit, &mut y).launch().unwrap(),
            }
            let mut expected = vec![0; 8];
            for k in (2..last).take_while(|&k| k as i32 <= limit) {
                let moved = shifted(&x, k);
                expected.iter_mut().zip(moved).for_each(|(sum, x)| *sum = *sum * 2 + x);
            }
            assert_eq!(y.to_vec().unwrap(), expected, "{last}, {limit} on {label}");
        }
    }
}

/// Neighbours on both sides, as far as a parameter says, and what begins at a parameter.
#[tile_kernel(where(R <= 4))]
fn neighbours<const R: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([8]);
    let mut y = y.partition_view_mut([8]);
    let x = x.load_masked(y.index());
    let mut sum = Tile::zeros([8]);
    for k in -(R as i32)..=R as i32 {
        sum = sum * 2 + x.shift(0, k, 9);
    }
    for k in (-(R as i32) + 1..0).rev() {
        sum = sum * 2 - x.shift(0, k, 5);
    }
    for k in R..5 {
        sum = sum * 2 + x.roll(0, k);
    }
    for k in (R..R * 2).rev() {
        sum = sum * 3 - x.roll(0, k);
    }
    y.store_masked(sum);
}

fn neighbour_sums(x: &[i32], reach: i32) -> Vec<i32> {
    let one = |part: &[i32]| -> Vec<i32> {
        let inside = |i: i32| part.get(i as usize).copied().unwrap_or(0);
        let at = |i: i32, fill: i32| if (0..8).contains(&i) { inside(i) } else { fill };
        let sum = |i: i32| {
            let mut sum = 0i32;
            (-reach..=reach).for_each(|k| sum = sum * 2 + at(i - k, 9));
            (-reach + 1..0).rev().for_each(|k| sum = sum * 2 - at(i - k, 5));
            (reach..5).for_each(|k| sum = sum * 2 + inside((i - k).rem_euclid(8)));
            (reach..reach * 2).rev().for_each(|k| sum = sum * 3 - inside((i - k).rem_euclid(8)));
            sum
        };
        (0..part.len() as i32).map(sum).collect()
    };
    x.chunks(8).flat_map(one).collect()
}

#[test]
fn turns_lie_on_both_sides_of_0() {
    let x: Vec<i32> = (0..20).map(|i| i * i % 17 - 8).collect();
    check_exact!(neighbours<R = 0>(x: x.clone(), [20]) -> i32, [20] => neighbour_sums(&x, 0));
    check_exact!(neighbours<R = 1>(x: x.clone(), [20]) -> i32, [20] => neighbour_sums(&x, 1));
    check_exact!(neighbours<R = 3>(x: x.clone(), [20]) -> i32, [20] => neighbour_sums(&x, 3));
    check_exact!(neighbours<R = 4>(x: x.clone(), [20]) -> i32, [20] => neighbour_sums(&x, 4));
}

/// Windows over a margin in a range that the counter says: a turn that an instance lacks asks nothing of sizes.
#[tile_kernel(where(W >= 1, W <= 4))]
fn smoothed<const W: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let mut sum = Tile::zeros([4]);
    for k in 0..W {
        let windows = x.pad([(1, 1)]).shrink([(k, n + 2)]).unfold(0, 3, 1).partition_view([4, 3]);
        sum += windows.load_masked([i, 0]).sum(1).reshape([4]);
    }
    y.store_masked(sum);
}

#[test]
fn a_turn_that_an_instance_lacks_asks_nothing() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0, 2.0], [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        smoothed::<1>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0, 3.0], "{label}");
        // A window of three begins at the second of four places, and none at the third.
        smoothed::<2>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [6.0, 3.0], "{label}");
        assert!(smoothed::<3>(&x, &mut y).launch().is_err(), "{label}");
    }
}
