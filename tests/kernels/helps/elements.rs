//! Functions of elements, which other libraries have under names of their own.

use super::super::check_exact;
use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// A case for each row of `y`.
#[tile_kernel]
fn floats(
    x: &Tensor<f32, 1, 16>,
    a: &Tensor<f32, 1, 16>,
    b: &Tensor<f32, 1, 16>,
    y: &mut Tensor<f32, 31, 16>,
) {
    let x = x.partition_view([1, 16]).load([0, 0]);
    let a = a.partition_view([1, 16]).load([0, 0]);
    let b = b.partition_view([1, 16]).load([0, 0]);
    let (slope, low, high, condition) = (0.25, -0.5, 0.5, x > a);
    let power = |x: Tile<f32, 2>, y: Tile<f32, 2>| powf(x, y);
    let exponentials = exp(x - x.max(1));
    let log_of_sum = x.max(1) + log(exp(x - x.max(1)).sum(1));
    let variance = ((x - x.mean(1)) * (x - x.mean(1))).mean(1);
    let rows = [
        a + b,
        a - b,
        a * b,
        a / b,
        x * x,
        max(a, b) - min(a, b),
        x - x.trunc(),
        rsqrt(x),
        x.log(),
        x.log2(),
        x.log10(),
        max(x, 0.0),
        max(x, 0.0) + ln_1p(exp(-abs(x))),
        select(x < 0.0, x * slope, x),
        silu(x),
        x.mul_add(a, b),
        x.clamp(low, high),
        power(x.abs(), b),
        x.powi(3),
        x * (180.0 / std::f32::consts::PI),
        x * (std::f32::consts::PI / 180.0),
        copysign(1.0, x),
        select(condition, a, b),
        select(condition, a, x),
        exponentials / exponentials.sum(1),
        log_of_sum.broadcast([1, 16]),
        variance.broadcast([1, 16]),
        (x * x).sum(1).sqrt().broadcast([1, 16]),
        select((x >= a) & (x < b), 1.0, 0.0),
        (x.sin(), x.cos()).0,
        select(x <= a, 1.0, 0.0),
    ];
    let mut y = y.partition_view_mut([1, 16]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(rows[i]);
    }
}

#[test]
fn functions_of_elements_mean_what_they_are_offered_for() {
    let [x, a, b] = [1, 2, 3].map(|seed| numbers::<f32>(16, seed));
    let exact: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let sum = |of: &dyn Fn(f64) -> f64| exact.iter().map(|&x| of(x)).sum::<f64>();
    let mean = sum(&|x| x) / 16.0;
    let of: [&dyn Fn(f64, f64, f64) -> f64; 31] = [
        &|_, a, b| a + b,
        &|_, a, b| a - b,
        &|_, a, b| a * b,
        &|_, a, b| a / b,
        &|x, _, _| x.powi(2),
        &|_, a, b| (a - b).abs(),
        &|x, _, _| x.fract(),
        &|x, _, _| x.powf(-0.5),
        &|x, _, _| x.ln(),
        &|x, _, _| x.log2(),
        &|x, _, _| x.log10(),
        &|x, _, _| if x > 0.0 { x } else { 0.0 },
        &|x, _, _| x.exp().ln_1p(),
        &|x, _, _| if x > 0.0 { x } else { x * 0.25 },
        &|x, _, _| x / (1.0 + (-x).exp()),
        &|x, a, b| x * a + b,
        &|x, _, _| x.clamp(-0.5, 0.5),
        &|x, _, b| x.abs().powf(b),
        &|x, _, _| x * x * x,
        &|x, _, _| x.to_degrees(),
        &|x, _, _| x.to_radians(),
        &|x, _, _| x.signum(),
        &|x, a, b| if x > a { a } else { b },
        &|x, a, _| if x > a { a } else { x },
        &|x, _, _| x.exp() / sum(&f64::exp),
        &|_, _, _| sum(&f64::exp).ln(),
        &|_, _, _| sum(&|x| (x - mean) * (x - mean)) / 16.0,
        &|_, _, _| sum(&|x| x * x).sqrt(),
        &|x, a, b| f64::from(u8::from((a..b).contains(&x))),
        &|x, _, _| x.sin(),
        &|x, a, _| f64::from(u8::from(x <= a)),
    ];
    let row = |of: &&dyn Fn(f64, f64, f64) -> f64| -> Vec<f64> {
        (0..16).map(|i| of(exact[i], f64::from(a[i]), f64::from(b[i]))).collect()
    };
    let expected: Vec<f64> = of.iter().flat_map(row).collect();
    check_kernel!(floats<>(
        input x: (x, [1, 16]), input a: (a, [1, 16]), input b: (b, [1, 16]),
        output y: (vec![0f32; 31 * 16], [31, 16] => expected, 1e-5),
    ));
}

#[tile_kernel]
fn integers(x: &Tensor<i32, 1, 8>, a: &Tensor<i32, 1, 8>, b: &Tensor<i32, 1, 8>, y: &mut Tensor<i32, 16, 8>) {
    let x = x.partition_view([1, 8]).load([0, 0]);
    let a = a.partition_view([1, 8]).load([0, 0]);
    let b = b.partition_view([1, 8]).load([0, 0]);
    let scaled = a.cast::<f32>() * 0.5;
    let rows = [
        (!x).count_ones(),
        (!x).leading_zeros(),
        (!x).trailing_zeros(),
        x.count_ones(),
        x.leading_zeros(),
        (x.count_ones() == 1).cast::<i32>(),
        div_floor(a, b),
        mul_hi(a, b),
        (x < 0).cast::<i32>(),
        (x > 0).cast::<i32>(),
        x.abs().cast::<u32>().bitcast::<i32>(),
        ((a == 3) | (b == 2)).cast::<i32>(),
        x.cast::<f32>().cast::<i32>(),
        {
            let x = scaled;
            x.cast::<i32>()
        },
        {
            let x = scaled;
            x.bitcast::<u32>().bitcast::<i32>()
        },
        {
            let (wrapped, overflow) = a.overflowing_mul(b);
            let instead = 7;
            select(overflow, instead, wrapped)
        },
    ];
    let mut y = y.partition_view_mut([1, 8]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(rows[i]);
    }
}

#[test]
fn functions_of_integers_mean_what_they_are_offered_for() {
    let x = [0, 1, -1, 64, 65, i32::MIN, i32::MIN + 1, 1 << 30];
    let a = [3, -7, 7, -1, 1 << 20, i32::MIN, 3, 0];
    let b = [2, 2, 3, 4, 1 << 15, 2, 2, 5];
    let of: [&dyn Fn(i32, i32, i32) -> i32; 16] = [
        &|x, _, _| x.count_zeros() as i32,
        &|x, _, _| x.leading_ones() as i32,
        &|x, _, _| x.trailing_ones() as i32,
        &|x, _, _| x.count_ones() as i32,
        &|x, _, _| x.leading_zeros() as i32,
        &|x, _, _| i32::from((x as u32).is_power_of_two()),
        &|_, a, b| a.div_euclid(b),
        &|_, a, b| ((i64::from(a) * i64::from(b)) >> 32) as i32,
        &|x, _, _| i32::from(x.is_negative()),
        &|x, _, _| i32::from(x.is_positive()),
        &|x, _, _| x.unsigned_abs() as i32,
        &|_, a, b| i32::from(a == 3 || b == 2),
        &|x, _, _| x as f32 as i32,
        &|_, a, _| (a as f32 * 0.5) as i32,
        &|_, a, _| (a as f32 * 0.5).to_bits().cast_signed(),
        &|_, a, b| a.checked_mul(b).unwrap_or(7),
    ];
    let expected: Vec<i32> = of.iter().flat_map(|of| (0..8).map(move |i| of(x[i], a[i], b[i]))).collect();
    check_exact!(integers<>(x: x, [1, 8]; a: a, [1, 8]; b: b, [1, 8]) -> i32, [16, 8] => expected);
}

#[tile_kernel]
fn bits(x: &Tensor<u32, 4>, k: u32, y: &mut Tensor<u32, 4, 4>) {
    let x = x.partition_view([4]).load([0]);
    let rows = [x.rotate_left(k), x.rotate_right(k), x.swap_bytes(), x.reverse_bits()];
    let mut y = y.partition_view_mut([1, 4]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(rows[i].unsqueeze(0));
    }
}

#[test]
fn bits_go_where_they_are_said_to() {
    let x = [1u32, 0x8000_0001, 0xdead_beef, 7];
    for by in [0, 1, 13] {
        let rows = [x.map(|x| x.rotate_left(by)), x.map(|x| x.rotate_right(by)), x.map(u32::swap_bytes)];
        let expected = [rows.concat(), x.map(u32::reverse_bits).to_vec()].concat();
        check_kernel!(bits<>(
            input x: (x, [4]), number k: (by), output y: ([0u32; 16], [4, 4] => expected, 0.0),
        ));
    }
}

/// Scalars, which are converted otherwise than tiles are.
#[tile_kernel]
fn scalars(x: i32, base: f32, y: &mut Tensor<f32, 10>) {
    let (condition, a, b) = (x < 0, 1.5, 2.5);
    let kept = matches!(x, 1 | 2);
    let rows = [
        x as f32,
        x.abs() as u32 as f32,
        if condition { a } else { b },
        if kept { 1.0 } else { 0.0 },
        (x as f32 + 0.5) as i32 as f32,
        if (-2..3).contains(&x) { 1.0 } else { 0.0 },
        {
            let x = x as f32 * 0.5;
            (x as i32) as f32
        },
        {
            let x = x.abs() as f32;
            x.ln()
        },
        {
            let x = x.abs() as f32;
            x.ln() / base.ln()
        },
        (x as f16 * 0.5) as f32,
    ];
    let mut y = y.partition_view_mut([1]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(Tile::full([1], rows[i]));
    }
}

#[test]
fn scalars_are_chosen_and_converted() {
    for (value, expected) in [
        (-3, [-3.0, 3.0, 1.5, 0.0, -2.0, 0.0, -1.0, 3f32.ln(), 3f32.log2(), -1.5]),
        (2, [2.0, 2.0, 2.5, 1.0, 2.0, 1.0, 1.0, 2f32.ln(), 1.0, 1.0]),
    ] {
        check_kernel!(scalars<>(
            number x: (value), number base: (2f32), output y: ([0f32; 10], [10] => expected, 1e-6),
        ));
    }
}

/// Where the largest and the smallest number are, and the first element of a mask that is true, or false.
#[tile_kernel]
fn positions(x: &Tensor<i32, 1, 8>, y: &mut Tensor<i32, 1, 4>) {
    let x = x.partition_view([1, 8]).load([0, 0]);
    let (most, least) = (x.argmax(1), x.argmin(1));
    let x = x > 2;
    let (first_true, first_false) = (x.cast::<i32>().argmax(1), x.cast::<i32>().argmin(1));
    let mut y = y.partition_view_mut([1, 4]);
    y.store(cat([most, least, first_true, first_false], 1));
}

#[test]
fn positions_of_masks_are_those_of_their_numbers() {
    check_kernel!(positions<>(
        input x: ([3, 3, 1, 7, 0, 7, 0, 2], [1, 8]),
        output y: (vec![0i32; 4], [1, 4] => [3, 4, 0, 2], 0.0),
    ));
    check_kernel!(positions<>(
        input x: ([1, 2, 0, 3, 4, 3, 4, 2], [1, 8]),
        output y: (vec![0i32; 4], [1, 4] => [4, 2, 3, 0], 0.0),
    ));
}

/// Sizes don't wrap, and numbers do.
#[tile_kernel]
fn less_one(y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::full([4], (n - 1) as i32 * 10 + (n as i32).wrapping_sub(1)));
}

#[test]
fn sizes_are_converted_before_they_wrap() {
    check_exact!(less_one<>() -> i32, [3] => [22, 22, 22]);
}
