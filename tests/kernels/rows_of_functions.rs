//! Functions and methods that no other theme's kernels call, each a row of its kernel's output: from their names in a
//! kernel to what every device gives, against Rust's own and plain loops.

use super::check_exact;
use super::whole::check_kernel;
use tile::prelude::*;

/// Functions of one number; `asin`, `acos` and `atanh` of a part of it, and `acosh` of what is beyond 1.
#[tile_kernel]
fn of_one(x: &Tensor<f32, 64>, y: &mut Tensor<f32, 14, 64>) {
    let x = x.partition_view([64]).load([0]);
    let mut y = y.partition_view_mut([14, 64]);
    let part = x / 8.0;
    let first = [exp10(x), exp_m1(x), tan(part), asin(part), acos(part), atan(x), sinh(x)];
    let second = [cosh(x), asinh(x), acosh(abs(x) + 1.0), atanh(part), erf(x), erfc(x), ceil(x)];
    y.store(stack(first, 0).cat(stack(second, 0), 0));
}

/// 2/√π ∫ exp(−t²) from 0 to x, by Simpson's rule.
fn erf_of(x: f64) -> f64 {
    let (steps, of) = (2000, |t: f64| (-t * t).exp());
    let step = x / f64::from(steps);
    let inner: f64 = (1..steps).map(|i| of(f64::from(i) * step) * if i % 2 == 0 { 2.0 } else { 4.0 }).sum();
    (of(0.0) + inner + of(x)) * step / 3.0 * std::f64::consts::FRAC_2_SQRT_PI
}

#[test]
fn functions_of_one_number_are_near_rusts() {
    let x: Vec<f32> = (0..64).map(|i| (i as f32 - 31.5) * 0.125).collect();
    let part = |x: f64| x / 8.0;
    let functions: [&dyn Fn(f64) -> f64; 14] = [
        &|x| 10f64.powf(x),
        &f64::exp_m1,
        &|x| part(x).tan(),
        &|x| part(x).asin(),
        &|x| part(x).acos(),
        &f64::atan,
        &f64::sinh,
        &f64::cosh,
        &f64::asinh,
        &|x| (x.abs() + 1.0).acosh(),
        &|x| part(x).atanh(),
        &erf_of,
        &|x| 1.0 - erf_of(x),
        &f64::ceil,
    ];
    let values = functions.iter().flat_map(|of| x.iter().map(|&x| of(f64::from(x))));
    let expected: Vec<f64> = values.collect();
    let zeros = vec![0f32; 14 * 64];
    check_kernel!(of_one<>(
        input x: (x, [64]),
        output y: (zeros, [14, 64] => expected, 1e-6),
    ));
}

#[tile_kernel]
fn of_two(a: &Tensor<f32, 32>, b: &Tensor<f32, 32>, y: &mut Tensor<f32, 2, 32>) {
    let a = a.partition_view([32]).load([0]);
    let b = b.partition_view([32]).load([0]);
    let mut y = y.partition_view_mut([2, 32]);
    y.store(stack([hypot(a, b), select(is_infinite(a / b), 1.0, 0.0)], 0));
}

#[test]
fn squares_that_overflow_have_a_root_and_quotients_by_zero_are_infinite() {
    let a: Vec<f32> = (0..32).map(|i| [3.0, 3e30, -0.0, 1e-30][i % 4] * (i / 4) as f32).collect();
    let b: Vec<f32> = (0..32).map(|i| [4.0, -4e30, 0.0, 1e-30][i % 4] * (i % 3) as f32).collect();
    let pairs = || a.iter().zip(&b);
    let hypotenuses = pairs().map(|(&a, &b)| f64::from(a).hypot(f64::from(b)));
    let infinite = pairs().map(|(&a, &b)| f64::from(u8::from((a / b).is_infinite())));
    let expected: Vec<f64> = hypotenuses.chain(infinite).collect();
    let zeros = vec![0f32; 64];
    check_kernel!(of_two<>(
        input a: (a, [32]),
        input b: (b, [32]),
        output y: (zeros, [2, 32] => expected, 1e-6),
    ));
}

/// Sums, products and differences that end at the format's bounds, and shifts whose number wraps.
#[tile_kernel]
fn of_integers(a: &Tensor<i8, 64>, b: &Tensor<i8, 64>, y: &mut Tensor<i8, 4, 64>) {
    let a = a.partition_view([64]).load([0]);
    let b = b.partition_view([64]).load([0]);
    let mut y = y.partition_view_mut([4, 64]);
    let shifted = a.wrapping_shr(b);
    y.store(stack([saturating_add(a, b), saturating_mul(a, b), saturating_sub(a, b), shifted], 0));
}

#[test]
fn integers_end_at_the_bounds_of_their_format() {
    let a: Vec<i8> = (0..64).map(|i| (i * 37) as u8 as i8).collect();
    let b: Vec<i8> = (0..64).map(|i| (i * i * 11 + 5) as u8 as i8).collect();
    let rows: [fn(i8, i8) -> i8; 4] = [i8::saturating_add, i8::saturating_mul, i8::saturating_sub, |a, b| {
        a.wrapping_shr(u32::from(b as u8))
    }];
    let expected: Vec<i8> =
        rows.iter().flat_map(|of| a.iter().zip(&b).map(|(&a, &b)| of(a, b)).collect::<Vec<_>>()).collect();
    check_exact!(of_integers<>(a: a, [64]; b: b, [64]) -> i8, [4, 64] => expected.clone());
}

/// What is too large for the narrower format becomes its greatest number.
#[tile_kernel]
fn saturated(x: &Tensor<f32, 16>, y: &mut Tensor<f32, 16>) {
    let x = x.partition_view([16]).load([0]);
    let mut y = y.partition_view_mut([16]);
    y.store(x.saturating_cast::<f8e4m3fn>().cast::<f32>());
}

#[test]
fn floats_end_at_the_greatest_number_of_their_format() {
    let x: Vec<f32> = (0..16).map(|i| (i as f32 - 8.0) * 96.0).collect();
    // Between 256 and 448 the format's numbers are 32 apart, below that 16, 8, …; ties go to the even one.
    let nearest = |x: f32| {
        let unit = if x == 0.0 { 1.0 } else { (x.abs().log2().floor() - 3.0).exp2() };
        ((x / unit).round_ties_even() * unit).clamp(-448.0, 448.0)
    };
    let expected: Vec<f32> = x.iter().map(|&x| nearest(x)).collect();
    check_exact!(saturated<>(x: x, [16]) -> f32, [16] => expected.clone());
}

/// Scans of each order and end, along rows.
#[tile_kernel]
fn scans(x: &Tensor<i32, 3, 8>, y: &mut Tensor<i32, 13, 3, 8>) {
    let x = x.partition_view([3, 8]).load([0, 0]);
    let mut y = y.partition_view_mut([13, 3, 8]);
    let extremes = [
        x.cummax(1),
        x.cummax_reverse(1),
        x.cummax_exclusive(1),
        x.cummin_reverse(1),
        x.cummin_exclusive(1),
        x.cummin_exclusive_reverse(1),
    ];
    let others = [
        x.cumprod_reverse(1),
        x.cumprod_exclusive_reverse(1),
        x.cumsum_exclusive_reverse(1),
        scan_reverse(x, 1, 1, |a, b| a * 3 - b),
        scan_exclusive(x, 1, 1, |a, b| a * 3 - b),
        scan_exclusive_reverse(x, 1, 1, |a, b| a * 3 - b),
        associative_scan_reverse(x, 1, 0, |a, b| a ^ b),
    ];
    y.store(stack(extremes, 0).cat(stack(others, 0), 0));
}

/// A scan of a row by plain loops.
fn scanned(
    row: &[i32],
    (reverse, exclusive): (bool, bool),
    first: i32,
    join: impl Fn(i32, i32) -> i32,
) -> Vec<i32> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    if reverse {
        order.reverse();
    }
    let (mut so_far, mut result) = (first, vec![0; row.len()]);
    for place in order {
        let next = join(so_far, row[place]);
        result[place] = if exclusive { so_far } else { next };
        so_far = next;
    }
    result
}

#[test]
fn scans_go_in_every_order() {
    let x: Vec<i32> = (0..24).map(|i| (i * i * 5 + i) % 17 - 8).collect();
    let each = |how: (bool, bool), first: i32, join: fn(i32, i32) -> i32| -> Vec<i32> {
        x.chunks(8).flat_map(|row| scanned(row, how, first, join)).collect()
    };
    let (forward, reverse, exclusive, both) = ((false, false), (true, false), (false, true), (true, true));
    let joined: fn(i32, i32) -> i32 = |a, b| a.wrapping_mul(3).wrapping_sub(b);
    let expected: Vec<i32> = [
        each(forward, i32::MIN, i32::max),
        each(reverse, i32::MIN, i32::max),
        each(exclusive, i32::MIN, i32::max),
        each(reverse, i32::MAX, i32::min),
        each(exclusive, i32::MAX, i32::min),
        each(both, i32::MAX, i32::min),
        each(reverse, 1, i32::wrapping_mul),
        each(both, 1, i32::wrapping_mul),
        each(both, 0, i32::wrapping_add),
        each(reverse, 1, joined),
        each(exclusive, 1, joined),
        each(both, 1, joined),
        each(reverse, 0, |a, b| a ^ b),
    ]
    .concat();
    check_exact!(scans<>(x: x, [3, 8]) -> i32, [13, 3, 8] => expected.clone());
}

/// Rows joined bit by bit, and sorted from the greatest on.
#[tile_kernel]
fn joined_and_sorted(x: &Tensor<u32, 4, 16>, y: &mut Tensor<u32, 4, 18>) {
    let x = x.partition_view([4, 16]).load([0, 0]);
    let mut y = y.partition_view_mut([4, 18]);
    y.store(cat([x.sort_descending(1), x.reduce_and(1), x.reduce_or(1)], 1));
}

#[test]
fn rows_are_joined_bit_by_bit_and_sorted_from_the_greatest() {
    let x: Vec<u32> = (0..64u32).map(|i| (i * i * 265_443 + 77) | 0x10 | (i / 16)).collect();
    let mut expected = Vec::new();
    for row in x.chunks(16) {
        let mut sorted = row.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        sorted.extend([row.iter().fold(u32::MAX, |a, b| a & b), row.iter().fold(0, |a, b| a | b)]);
        expected.extend(sorted);
    }
    check_exact!(joined_and_sorted<>(x: x, [4, 16]) -> u32, [4, 18] => expected.clone());
}

/// Every atomic operation of integers on eight elements of which each other one is left out; the old values too.
#[tile_kernel]
fn some_elements(x: &mut Tensor<i32, 7, 8>, y: &mut Tensor<i32, 7, 8>) {
    let mut y = y.partition_view_mut([7, 8]);
    let x = x.atomic_view();
    let at = Tile::<i32, 1>::iota([8], 0);
    let every_other = at % 2 == 0;
    let value = at * 3 - 5;
    let sub = x.fetch_sub_masked(every_other, (0, at), value, Relaxed, DeviceScope);
    let min = x.fetch_min_masked(every_other, (1, at), value, Relaxed, DeviceScope);
    let max = x.fetch_max_masked(every_other, (2, at), value, Relaxed, DeviceScope);
    let and = x.fetch_and_masked(every_other, (3, at), value, Relaxed, DeviceScope);
    let or = x.fetch_or_masked(every_other, (4, at), value, Relaxed, DeviceScope);
    let xor = x.fetch_xor_masked(every_other, (5, at), value, Relaxed, DeviceScope);
    let load = x.load_masked(every_other, (6, at), Relaxed, DeviceScope);
    let old = stack([sub, min, max, and, or, xor, load], 0);
    let is_given = every_other.unsqueeze(0).broadcast([7, 8]);
    y.store(select(is_given, old, 0));
}

#[test]
fn elements_that_are_left_out_stay_as_they_are() {
    let x: Vec<i32> = (0..56).map(|i| (i * 29 + 3) % 41 - 20).collect();
    let rows: [fn(i32, i32) -> i32; 7] = [
        |x, value| x - value,
        i32::min,
        i32::max,
        |x, value| x & value,
        |x, value| x | value,
        |x, value| x ^ value,
        |x, _| x,
    ];
    let given = |i: usize| i.is_multiple_of(2);
    let after = |i: usize| if given(i) { rows[i / 8](x[i], (i % 8) as i32 * 3 - 5) } else { x[i] };
    let left: Vec<i32> = (0..56).map(after).collect();
    let old: Vec<i32> = (0..56).map(|i| if given(i) { x[i] } else { 0 }).collect();
    let zeros = vec![0i32; 56];
    check_kernel!(some_elements<>(
        output x: (x, [7, 8] => left, 0.0),
        output y: (zeros, [7, 8] => old, 0.0),
    ));
}

/// The least and the greatest float of each place, and what lay there.
#[tile_kernel(grid = [4])]
fn extremes(least: &mut Tensor<f32, 8>, most: &mut Tensor<f32, 8>, last: &mut Tensor<f32, 1>) {
    let block = block_id(0);
    let at = Tile::<i32, 1>::iota([8], 0);
    let value = ((at * 5 + block as i32 * 3) % 11).cast::<f32>() - 5.0;
    least.atomic_view().fetch_min([at], value, Relaxed, DeviceScope);
    most.atomic_view().fetch_max([at], value, Relaxed, DeviceScope);
    if block == 0 {
        last.atomic_view().swap([0], Tile::full([1], -0.5), Relaxed, DeviceScope);
    }
}

#[test]
fn floats_have_atomic_extremes_and_are_swapped() {
    let value = |at: i32, block: i32| ((at * 5 + block * 3) % 11 - 5) as f32;
    let of = |at: i32, join: fn(f32, f32) -> f32, first: f32| {
        (0..4).map(|block| value(at, block)).fold(first, join)
    };
    let least: Vec<f32> = (0..8).map(|at| of(at, f32::min, 0.5)).collect();
    let most: Vec<f32> = (0..8).map(|at| of(at, f32::max, -0.5)).collect();
    let (from, to, one, last) = (vec![0.5f32; 8], vec![-0.5f32; 8], vec![7.0f32], vec![-0.5f32]);
    check_kernel!(extremes<>(
        output least: (from, [8] => least, 0.0),
        output most: (to, [8] => most, 0.0),
        output last: (one, [1] => last, 0.0),
    ));
}
