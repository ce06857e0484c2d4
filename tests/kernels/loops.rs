//! `while`, and `for` over ranges of every kind, against the loops that they are in Rust.

use super::{check_exact, check_vectors, devices, numbers};
use tile::ir::Binding;
use tile::prelude::*;

const B8: &[(&str, Binding)] = &[("B", Binding::Const(8))];

/// Square roots by Newton's iteration, for each block as long as its worst element needs.
#[tile_kernel]
fn square_roots<const B: usize>(x: &Tensor<f64, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked_or(1.0, y.index());
    let mut root = x;
    let mut turns = 0;
    while (root * root - x).abs().max(0).item() > 1e-12 && turns < 100 {
        root = (root + x / root) * 0.5;
        turns += 1;
    }
    y.store_masked(root);
}

#[test]
fn newton_runs_until_a_tile_is_close() {
    let x: Vec<f64> = numbers::<f64>(20, 1).iter().map(|x| 10.0 * x.abs() + 0.5).collect();
    let expected = x.iter().map(|x| x.sqrt()).collect();
    check_vectors(square_roots::ir(), B8, &x, expected, 1e-12, |x, y| square_roots::<8>(x, y).launch());
}

/// Loops that don't run: a `while` that is false at once, empty and reversed ranges. Their bodies would change
/// everything.
#[tile_kernel]
#[allow(clippy::reversed_empty_ranges, reason = "that they don't run is the test")]
fn idle<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut sum = x.load_masked([i]);
    let none = n / (n + 1);
    while sum.max(0).item() > 1000.0 {
        sum *= 0.0;
    }
    for p in 5..none {
        sum += x.load_masked([p + 100_000]);
    }
    for p in (i + 3..i).rev() {
        sum += p as f32;
    }
    for p in (7i32..-7).step_by(2) {
        sum += p as f32;
    }
    y.store_masked(sum);
}

#[test]
fn loops_that_do_not_run_change_nothing() {
    let x = numbers::<f32>(20, 2);
    let expected = x.iter().map(|&x| f64::from(x)).collect();
    check_vectors(idle::ir(), B8, &x, expected, 0.0, |x, y| idle::<8>(x, y).launch());
}

/// Ranges of several integer types, with negative ends, steps, backwards, and ends known at run time. The
/// order matters: each step doubles what came before.
#[tile_kernel]
fn ranges<const B: usize>(x: &Tensor<f64, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [block] = y.index();
    let mut sum = x.load_masked([block]);
    for i in -2..4 {
        sum = sum * 2.0 + i as f64;
    }
    for i in (0..10).step_by(3) {
        sum = sum * 2.0 + i as f64;
    }
    for i in (1..=7).rev().step_by(2) {
        sum = sum * 2.0 + i as f64;
    }
    for i in (0..10).step_by(4).rev() {
        sum = sum * 2.0 + i as f64;
    }
    let end = block as i32 * 3 - 1;
    for i in -1i32..end {
        sum = sum * 2.0 + i as f64;
    }
    for i in (-3..=end).rev() {
        sum = sum * 2.0 + (i * 10) as f64;
    }
    for i in (block..2 * block + 3).step_by(block + 1).rev() {
        sum = sum * 2.0 + i as f64;
    }
    for i in (250u8..=255).step_by(2) {
        sum = sum * 2.0 + i as f64;
    }
    for _ in 0..=block {
        sum += 1.0;
    }
    y.store_masked(sum);
}

#[test]
fn ranges_count_as_in_rust() {
    let x = numbers::<f64>(28, 3);
    let one = |(at, &x): (usize, &f64)| {
        let block = at / 8;
        let end = block as i32 * 3 - 1;
        let mut counters: Vec<f64> = (-2..4).map(f64::from).collect();
        counters.extend((0..10).step_by(3).map(f64::from));
        counters.extend([7.0, 5.0, 3.0, 1.0]);
        counters.extend([8.0, 4.0, 0.0]);
        counters.extend((-1..end).map(f64::from));
        counters.extend((-3..=end).rev().map(|i| f64::from(i * 10)));
        counters.extend((block..2 * block + 3).step_by(block + 1).rev().map(|i| i as f64));
        counters.extend([250.0, 252.0, 254.0]);
        counters.iter().fold(x, |sum, i| sum * 2.0 + i) + (block + 1) as f64
    };
    let expected = x.iter().enumerate().map(one).collect();
    check_vectors(ranges::ir(), B8, &x, expected, 1e-12, |x, y| ranges::<8>(x, y).launch());
}

/// Recurrences that end before the first element, or go in steps: where a range lies between sizes, its counter is known to
/// lie there, too, so that accesses need no mask.
#[tile_kernel]
fn backwards(x: &Tensor<f64, rows, n>, y: &mut Tensor<f64, rows, n>) {
    let x = x.partition_view([1, 1]);
    let mut y = y.partition_view_mut([1, 1]).spanning([1]);
    let [row, _] = y.index();
    let mut sum = Tile::zeros([1, 1]);
    for i in (1..n).rev() {
        sum = sum * 0.5 + x.load([row, i]);
        y.at([i]).store(sum);
    }
    for i in (1..n).rev() {
        sum = sum * 0.5 + x.load([row, i - 1]);
        let mut before = y.at([i - 1]);
        before.store(before.load() + sum);
    }
    for i in (2..n).step_by(3).rev() {
        sum = sum * 0.5 + i as f64;
    }
    for i in (2..=n).rev().step_by(3) {
        sum = sum * 0.5 + i as f64;
    }
    for i in (3..n).step_by(2) {
        sum = sum * 0.5 + i as f64;
    }
    if n > 0 {
        y.at([0]).store(sum);
    }
}

#[test]
fn counters_of_ranges_between_sizes_are_bounded() {
    for n in [1, 2, 3, 4, 5, 9] {
        let x = numbers::<f64>(2 * n, 5);
        let mut expected = vec![0.0; 2 * n];
        for (x, y) in x.chunks(n).zip(expected.chunks_mut(n)) {
            let mut sum = 0.0;
            for i in (1..n).rev() {
                sum = sum * 0.5 + x[i];
                y[i] = sum;
            }
            for i in (1..n).rev() {
                sum = sum * 0.5 + x[i - 1];
                y[i - 1] += sum;
            }
            let steps = (2..n).step_by(3).rev().chain((2..=n).rev().step_by(3)).chain((3..n).step_by(2));
            y[0] = steps.fold(sum, |sum, i| sum * 0.5 + i as f64);
        }
        super::check_exact!(backwards<>(x: &x, [2, n]) -> f64, [2, n] => expected);
    }
}

/// Collatz steps in wrapping integers, one `while` in another, and arithmetic that overflows.
#[tile_kernel]
fn integers<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let first = x.load_masked([i]).max(0).item();
    let (mut value, mut steps) = (first, 0);
    while value != 1 && steps < 50 {
        while value % 2 == 0 {
            value /= 2;
            steps += 1;
        }
        if value != 1 {
            value = 3 * value + 1;
            steps += 1;
        }
    }
    let wrapped = (first + i32::MAX) * 3 - -(i32::MIN) / (first - first);
    let rest = first % (first - first) + (i32::MIN >> 33) + (1 << first);
    y.store_masked(Tile::zeros([B]) + steps + (wrapped ^ rest));
}

#[test]
fn integer_scalars_wrap_on_every_device() {
    let x: Vec<i32> = vec![6, 2, 3, 1, 0, 0, 0, 0, 27, 7, 9, 1, 1, 1, 1, 1, 35];
    let block = |block: &[i32]| {
        let first = *block.iter().max().unwrap_or(&0);
        let (mut value, mut steps) = (first, 0i32);
        while value != 1 && steps < 50 {
            while value % 2 == 0 {
                value /= 2;
                steps += 1;
            }
            if value != 1 {
                value = 3 * value + 1;
                steps += 1;
            }
        }
        let wrapped = first.wrapping_add(i32::MAX).wrapping_mul(3);
        let rest = first.wrapping_add(i32::MIN >> 1).wrapping_add(1i32.wrapping_shl(first as u32));
        vec![f64::from(steps.wrapping_add(wrapped ^ rest)); block.len()]
    };
    let expected = x.chunks(8).flat_map(block).collect();
    check_vectors(integers::ir(), B8, &x, expected, 0.0, |x, y| integers::<8>(x, y).launch());
}

/// A loop over an array of tiles, and one that indexes arrays by its counter: both are unrolled.
#[tile_kernel]
fn unrolled<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    const PARTS: usize = 2usize.pow(2);
    const WIDTH: usize = B * PARTS - 3 * B;
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([WIDTH]);
    let [i] = y.index();
    let mut parts = [Tile::zeros([WIDTH]); PARTS];
    let weights = [1.0, -2.0, 3.0, 0.5];
    for round in 0..3 {
        for k in 0..PARTS {
            if k == 2 && round == 1 {
                continue;
            }
            parts[k] += x.load_masked([i + k]) * weights[k] + round as f32;
        }
    }
    parts[0] = parts[1];
    (parts[1], parts[2]) = (parts[2], parts[1]);
    let mut sum = Tile::zeros([B]);
    let mut scale = 1.0;
    for part in parts {
        sum += part * scale;
        scale *= 2.0;
    }
    y.store_masked(sum);
}

#[test]
fn arrays_of_tiles_are_unrolled() {
    let x = numbers::<f32>(20, 5);
    let weights = [1.0, -2.0, 3.0, 0.5];
    let one = |at: usize| {
        let element = |k: usize| f64::from(x.get(at + 8 * k).copied().unwrap_or(0.0));
        let mut parts = [0.0; 4];
        for round in 0..3 {
            for k in 0..4 {
                if k != 2 || round != 1 {
                    parts[k] += element(k) * weights[k] + f64::from(round);
                }
            }
        }
        parts[1] + 2.0 * parts[2] + 4.0 * parts[1] + 8.0 * parts[3]
    };
    let expected = (0..20).map(one).collect();
    check_vectors(unrolled::ir(), B8, &x, expected, 1e-5, |x, y| unrolled::<8>(x, y).launch());
}

/// Sums of all elements of the tile up to each one, in as many steps as its extent has bits, and its first half's sum.
#[tile_kernel]
fn doubling_sums<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut sum = x.load_masked(y.index());
    for step in [0, 1, 2, 3] {
        let by = 1 << step;
        sum += sum.shift(0, by, 0);
    }
    let half = sum.extract([(B >> 1) - 1], [1]);
    y.store_masked(sum + half);
}

#[test]
fn shifts_of_an_unrolled_counter_are_constants() {
    let x: Vec<i32> = (0..40).map(|i| i * i % 13 - 5).collect();
    let sum = |from: usize, to: usize| x[from..=to.min(39)].iter().sum::<i32>();
    let expected = (0..40).map(|i| sum(i / 16 * 16, i) + sum(i / 16 * 16, i / 16 * 16 + 7));
    check_exact!(doubling_sums<B = 16>(x: x.clone(), [40]) -> i32, [40] => expected.collect::<Vec<_>>());
}

#[tile_fn]
fn bit(step: usize) -> i32 {
    1 << step
}

/// Numbers shifted by those of other types: counters, sizes and elements.
#[tile_kernel]
fn shifts<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut t = x.load_masked(y.index());
    let least = t.min(0).item() as u8;
    for step in 0..x.tiles(0) + 2 {
        t ^= 1 << step;
        t += bit(step + 4) - ((8i64 << step) as i32);
    }
    let mut wide = 1u64 << n;
    wide >>= least;
    t += (wide as i32) + (-64 >> least) + (1 << n);
    y.store_masked(t);
}

#[test]
fn a_number_is_shifted_by_one_of_any_integer_type() {
    let x: Vec<i32> = (0..10).map(|i| i * 37 % 11).collect();
    let one = |(i, &element): (usize, &i32)| {
        let least = (0..4).map(|k| x.get(i / 4 * 4 + k).copied().unwrap_or(0)).min().unwrap_or(0);
        let t = (0..5).fold(element, |t, step| (t ^ (1 << step)) + (16 << step) - (8 << step));
        t + (1 << 10 >> least) + (-64 >> least) + (1 << 10)
    };
    let expected = x.iter().enumerate().map(one);
    check_exact!(shifts<B = 4>(x: x.clone(), [10]) -> i32, [10] => expected.collect::<Vec<_>>());
}

/// Counters whose names inner loops, closures and variables have as well, that the body changes, that stand in messages, and
/// that nothing but a place in a tensor says the type of.
#[tile_kernel]
fn counters<const B: usize>(ks: &Tensor<i32, 3>, x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let weights = [1, 2, 4];
    let mut sum = 0;
    for i in 0..y.tiles(0) {
        for i in 0..3 {
            sum += weights[i];
        }
        let doubled = [0, 2].map(|i| 2 * weights[i]);
        sum += doubled[0] + doubled[1] + i as i32;
        let i = 1;
        sum += weights[i];
    }
    for i in 0..3 {
        tile_assert!(weights[i] > 0, "{} at {i}", weights[i]);
    }
    for p in 0..3 {
        sum = 3 * sum + ks.gather([p]);
    }
    for mut p in 0..n {
        p *= 2;
        sum += p as i32;
    }
    for mut p in 0..3 {
        p += 1;
        sum = 2 * sum + weights[p - 1];
    }
    y.store_masked(x.load_masked(y.index()) + sum);
}

#[test]
fn a_counter_is_the_one_of_its_own_loop() {
    let (x, ks) = (vec![3, -1, 7, 0, 5], [5, -2, 9]);
    let per_tile = |i: i32| 7 + 10 + i + 2;
    let sum: i32 = (0..3).map(per_tile).sum();
    let sum = ks.iter().fold(sum, |sum, k| 3 * sum + k) + (0..5).map(|p| 2 * p).sum::<i32>();
    let sum = [1, 2, 4].iter().fold(sum, |sum, weight| 2 * sum + weight);
    let expected: Vec<i32> = x.iter().map(|x| x + sum).collect();
    check_exact!(counters<B = 2>(ks: ks, [3]; x: x, [5]) -> i32, [5] => expected);
}

/// Every `step`th number from 2 on, each with a mark that says how many there were.
#[tile_kernel]
fn stepped(step: usize, x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([8]);
    let mut y = y.partition_view_mut([8]);
    let mut t = x.load_masked(y.index());
    for p in (2..n).step_by(step) {
        t += 100 + p as i32;
    }
    y.store_masked(t);
}

/// A step of 0, which never ends, is a panic in Rust. Compiled code runs one turn.
#[test]
fn a_step_of_nothing_is_an_error_on_the_reference_device() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1, 2, 3, 4, 5, 6], [6]).unwrap();
        let stepped = |step| {
            let mut y = Tensor::zeros(&device, [6]).unwrap();
            stepped(step, &x, &mut y).launch().map(|()| y.to_vec().unwrap())
        };
        assert_eq!(stepped(3).unwrap(), [208, 209, 210, 211, 212, 213], "{label}");
        assert_eq!(stepped(usize::MAX).unwrap(), [103, 104, 105, 106, 107, 108], "{label}");
        match stepped(0) {
            Ok(found) => {
                assert_ne!(label, "reference");
                assert_eq!(found, [103, 104, 105, 106, 107, 108], "{label}");
            }
            Err(error) => {
                assert_eq!(label, "reference");
                let begin = "kernel `stepped` panicked in block [0] on the reference device: ";
                let message = error.reason().to_string();
                assert!(message.starts_with(begin) && message.contains("step"), "{message}");
            }
        }
    }
}

/// Ranges backwards in steps that the launch or an instance says, and steps that are no numbers of the counter's type. The order
/// matters: each step doubles what came before.
#[tile_kernel]
fn far_steps<const S: usize>(x: &Tensor<f64, 2, n>, step: usize, y: &mut Tensor<f64, 2, 1>) {
    let x = x.partition_view([1, 1]);
    let mut y = y.partition_view_mut([1, 1]);
    let [row, _] = y.index();
    let mut sum = Tile::zeros([1, 1]);
    for i in (0..x.tiles(1)).rev().step_by(step) {
        sum = sum * 2.0 + x.load_masked([row, i]);
    }
    for i in (0..x.tiles(1)).rev().step_by(S) {
        sum = sum * 2.0 + x.load_masked([row, i]) * 3.0;
    }
    for i in (0..n + 1).rev().step_by(step).rev() {
        sum = sum * 2.0 + i as f64;
    }
    for i in (1u8..7).rev().step_by(step) {
        sum = sum * 2.0 + i as f64;
    }
    for i in (-100..=100i8).step_by(200) {
        sum = sum * 2.0 + i as f64;
    }
    for i in (-100..=100i8).rev().step_by(step * 100) {
        sum = sum * 2.0 + i as f64;
    }
    for i in (7..200u8).step_by(300) {
        sum = sum * 2.0 + i as f64;
    }
    y.store(sum);
}

#[test]
fn steps_are_sizes_whatever_the_counter() {
    let x: Vec<f64> = (0..14).map(|i| f64::from(i * i % 11)).collect();
    let row = |x: &[f64]| {
        let mut counters: Vec<f64> = x.iter().rev().step_by(2).copied().collect();
        counters.extend(x.iter().rev().step_by(3).map(|x| x * 3.0));
        counters.extend((0..8usize).rev().step_by(2).rev().map(|i| i as f64));
        counters.extend((1u8..7).rev().step_by(2).map(f64::from));
        counters.extend((-100..=100i8).step_by(200).map(f64::from));
        counters.extend((-100..=100i8).rev().step_by(200).map(f64::from));
        counters.extend((7..200u8).step_by(300).map(f64::from));
        counters.iter().fold(0.0, |sum, i| sum * 2.0 + i)
    };
    let expected: Vec<f64> = x.chunks(7).map(row).collect();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [2, 7]).unwrap();
        let mut y = Tensor::zeros(&device, [2, 1]).unwrap();
        far_steps::<3>(&x, 2, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}
