//! Literals of formats that Rust has none of, and conversions that it doesn't have.

use super::whole::check_kernel;
use super::{check_exact, check_vectors};
use tile::ir::ops::Literal;
use tile::ir::{Array, Binding, DType};
use tile::prelude::*;

/// A literal wherever a tile or scalar of bf16 is the other side.
#[tile_kernel]
fn of_halves<const B: usize>(x: &Tensor<bf16, n>, y: &mut Tensor<bf16, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked_or(1.0, y.index());
    let slope = 0.25;
    let leaky = select(t < 0.0, t * slope, max(t, -(8.0)));
    let scalar: bf16 = 3.0;
    let half = |t: Tile<bf16, 1>| t * 0.5;
    let filled = Tile::<bf16, 1>::full([B], 0.125) + (scalar - 1.0);
    let mut sum = 1.5 - leaky.clamp(-1.0, 4.0) + half(filled);
    sum += 2.0;
    let start = x.extent(0) as bf16;
    y.store_masked(
        sum + (0.75 as bf16)
            + start
            + (scalar as f32 / 2.0) as bf16
            + reduce(t, 0, 0.0, |a, b| max(a, b * 0.5)),
    );
}

#[test]
fn halves_have_literals_and_conversions() {
    let x: Vec<bf16> = [-4.0, -2.0, 0.0, 1.0, 8.0].map(bf16::from_f32).to_vec();
    let bindings = &[("B", Binding::Const(8))];
    let highest = 4.0;
    let one = |x: &bf16| {
        let x = x.to_f64();
        let leaky = if x < 0.0 { x * 0.25 } else { x };
        1.5 - leaky.clamp(-1.0, 4.0) + 0.5 * 2.125 + 2.0 + 0.75 + 5.0 + 1.5 + highest
    };
    let expected = x.iter().map(one).collect();
    // Every sum is rounded to eight bits.
    check_vectors(of_halves::ir(), bindings, &x, expected, 0.02, |x, y| of_halves::<8>(x, y).launch());
}

/// Counters of loops that are unrolled, and constants, where they begin an operand: they are integers, and only what `as`
/// makes of them is of the other side's format.
#[tile_kernel]
fn of_counters<const B: usize>(x: &Tensor<bf16, n>, y: &mut Tensor<bf16, n>) {
    const STEP: i32 = 3;
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let mut parts = [t, t, t];
    for p in 0..3 {
        parts[p] += t + p as bf16;
        parts[p] *= p as bf16 + 0.5;
    }
    let [a, b, c] = parts;
    y.store_masked((a + b + c) * STEP as bf16 - 3 as bf16);
}

#[test]
fn counters_and_constants_are_converted() {
    let x: Vec<bf16> = [-4.0, 0.0, 1.0, 8.0].map(bf16::from_f32).to_vec();
    let part = |x: f64, p: f64| (2.0 * x + p) * (p + 0.5);
    let one = |x: &bf16| (0..3).map(|p| part(x.to_f64(), f64::from(p))).sum::<f64>() * 3.0 - 3.0;
    let expected = x.iter().map(one).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(of_counters::ir(), bindings, &x, expected, 0.02, |x, y| of_counters::<8>(x, y).launch());
}

/// Literals beside values whose format only the function's types say.
#[tile_fn]
fn leaky(t: Tile<bf16, 1>, s: bf16, f: f32) -> Tile<bf16, 1> {
    let half: bf16 = 0.5;
    let f = f * 2.0 - 0.5;
    let mut u = select(t < 0.0, t * 0.25, min(t, 4.0)) * half;
    u += 1.5 - (-(2.0) + s) * (f as bf16);
    select(u > 1.0, 1.0, u) + max(-(1.0), s)
}

#[tile_fn]
fn leaky_of<T: Float>(t: Tile<T, 1>, s: T) -> Tile<T, 1> {
    let half: T = 0.5;
    select(t < 0.0, t * 0.25, min(t, 4.0)) * half + (1.0 - s / 2.0)
}

#[tile_kernel]
fn of_functions<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    y.store_masked(leaky(t.cast::<bf16>(), bf16::of(3.0), 0.75).cast::<T>() + leaky_of(t, T::of(4.0)));
}

#[test]
fn literals_of_functions_have_the_format_beside_them() {
    fn check<T: Float>(dtype: DType) {
        let x: Vec<T> = (-8..8).map(|x| T::from_int(x)).collect();
        let one = |x: &T| {
            let x = x.to_float();
            let leaky = if x < 0.0 { x * 0.25 } else { x.min(4.0) } * 0.5;
            let u = leaky + 1.5 - 1.0;
            u.min(1.0) + 3.0 + leaky - 1.0
        };
        let expected = x.iter().map(one).collect();
        let bindings = &[("T", Binding::Elem(dtype)), ("B", Binding::Const(4))];
        check_vectors(of_functions::ir(), bindings, &x, expected, 0.0, |x, y| {
            of_functions::<T, 4>(x, y).launch()
        });
    }
    check::<f32>(DType::F32);
    check::<bf16>(DType::BF16);
}

#[tile_fn]
fn scaled<T: Float>(x: Tile<T, 1>, by: T, more: T) -> Tile<T, 1> {
    x * by + more
}

#[tile_fn]
fn bounded(x: Tile<bf16, 1>, low: bf16, high: bf16) -> Tile<bf16, 1> {
    x.clamp(low, high)
}

/// Literals as arguments: of methods, of functions of one's own, of closures, and of what makes tiles.
#[tile_fn]
fn arguments(view: &PartitionView<'_, bf16, 1>, i: usize, s: bf16) -> Tile<bf16, 1> {
    let x = view.load_masked_or(1.0, [i]);
    let half = |t: Tile<bf16, 1>, by: bf16| t * by;
    let cut = bounded(x.clamp(-2.0, (3.0)), -1.5, 2.5).mul_add(s, 0.5).maximum(-1.0);
    let framed = cut.pad([(0, 4)], 0.25).shift(0, 4, -0.25).extract([4], [4]);
    let wide = Tile::full([4], 0.125) + half(framed, 0.5);
    let sum = reduce(x, 0, 0.0, |a, b| a + b);
    scaled(wide, 2.0, 1.0) + select(x.lt(0.0), scaled(x, -(1.0), 0.0), x.powf(1.0)) + sum
}

#[tile_fn]
fn arguments_of<T: Float>(x: Tile<T, 1>) -> Tile<T, 1> {
    scaled(x.clamp(-2.0, 3.0), 0.5, 0.25).minimum(1.0)
}

#[tile_kernel]
fn of_arguments<const B: usize>(x: &Tensor<bf16, n>, y: &mut Tensor<bf16, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    y.store_masked(arguments(&x, i, bf16::of(2.0)) + arguments_of(x.load_masked([i])));
}

#[test]
fn literals_are_arguments_of_methods_and_functions() {
    let x: Vec<bf16> = [-4.0, -2.0, -1.0, 0.5, 1.0, 2.0, 4.0].map(bf16::from_f32).to_vec();
    let one = |(at, x): (usize, &bf16)| {
        let block: f64 = x_block(at).iter().sum();
        let x = x.to_f64();
        let cut = (x.clamp(-2.0, 3.0).clamp(-1.5, 2.5) * 2.0 + 0.5).max(-1.0);
        (0.125 + cut * 0.5) * 2.0 + 1.0 + x.abs() + block + (x.clamp(-2.0, 3.0) * 0.5 + 0.25).min(1.0)
    };
    // What is loaded beyond the tensor is 1.
    fn x_block(at: usize) -> [f64; 4] {
        if at < 4 { [-4.0, -2.0, -1.0, 0.5] } else { [1.0, 2.0, 4.0, 1.0] }
    }
    let expected = x.iter().enumerate().map(one).collect();
    check_vectors(of_arguments::ir(), &[("B", Binding::Const(4))], &x, expected, 0.01, |x, y| {
        of_arguments::<4>(x, y).launch()
    });
}

#[tile_fn]
fn shifted(x: Tile<f16, 1>, by: i32) -> Tile<f16, 1> {
    x + by as f16
}

#[tile_kernel]
fn of_a_parameter<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let shifted = shifted(t.cast::<f16>(), 3).cast::<T>();
    y.store_masked(select(t > 1.0, t * 0.5, -2.0) + shifted * (2i32 as T));
}

#[test]
fn type_parameters_have_literals_and_conversions() {
    fn check<T: Float>(dtype: DType) {
        let x: Vec<T> = (-4..5).map(|x| T::from_int(x)).collect();
        let one = |x: &T| {
            let x = x.to_float();
            (if x > 1.0 { x * 0.5 } else { -2.0 }) + (x + 3.0) * 2.0
        };
        let expected = x.iter().map(one).collect();
        let bindings = &[("T", Binding::Elem(dtype)), ("B", Binding::Const(4))];
        check_vectors(of_a_parameter::ir(), bindings, &x, expected, 0.0, |x, y| {
            of_a_parameter::<T, 4>(x, y).launch()
        });
    }
    check::<f32>(DType::F32);
    check::<f16>(DType::F16);
    check::<f64>(DType::F64);
}

/// Variables that are literals, of a type parameter because of one use, in others: negated, converted, compared, assigned.
#[tile_kernel]
fn of_variables<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let (w, start) = (0.5, -1.0);
    let (opposite, scale) = (-w, w as f32);
    let chosen = if w > 0.25 { 1.0 } else { 8.0 };
    let mut sum = start;
    sum += opposite;
    for p in 0..3 {
        sum = sum * w + p as T;
    }
    y.store_masked(x.load_masked(y.index()) * -w + sum + (scale * 2.0) as T - chosen);
}

#[test]
fn variables_of_type_parameters_are_negated_converted_and_compared() {
    fn check<T: Float>(dtype: DType) {
        let x: Vec<T> = (-4..5).map(|x| T::from_int(x)).collect();
        let sum = (0..3).fold(-1.5, |sum, p| sum * 0.5 + f64::from(p));
        let expected = x.iter().map(|x| x.to_float() * -0.5 + sum + 1.0 - 1.0).collect();
        let bindings = &[("T", Binding::Elem(dtype)), ("B", Binding::Const(4))];
        check_vectors(of_variables::ir(), bindings, &x, expected, 0.0, |x, y| {
            of_variables::<T, 4>(x, y).launch()
        });
    }
    check::<f32>(DType::F32);
    check::<bf16>(DType::BF16);
    check::<f64>(DType::F64);
}

/// Counters over arrays: of some that count tiles, and so are `usize`, and of one that multiplies tiles of `i32`.
#[tile_kernel]
fn place_of_the_largest<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let (mut best, mut place) = (Tile::full([B], i32::MIN), Tile::zeros([B]));
    for a in [0, 1] {
        for c in [0, 1] {
            let v = x.load_masked_or(i32::MIN, [i + a * 2 + c]);
            place = select(v > best, (a * 2 + c) as i32, place);
            best = max(best, v);
        }
    }
    for factor in [-1, 100] {
        place += best * factor;
    }
    y.store_masked(place);
}

#[test]
fn counters_over_arrays_have_the_type_of_their_uses() {
    let x = [3, 1, 4, 1, 5, 9, 2, 6];
    let one = |i: usize| {
        let later: Vec<i32> = x.iter().copied().skip(i).step_by(2).take(4).collect();
        let best = *later.iter().max().expect("there is one");
        let place = later.iter().position(|&x| x == best).expect("it is there");
        place as f64 + f64::from(best * 99)
    };
    let expected = (0..x.len()).map(one).collect();
    let bindings = &[("B", Binding::Const(2))];
    check_vectors(place_of_the_largest::ir(), bindings, &x, expected, 0.0, |x, y| {
        place_of_the_largest::<2>(x, y).launch()
    });
}

/// Numbers whose type another number of their array says, or the type that their variable is given: they round and wrap in it.
#[tile_kernel]
fn of_their_array<const B: usize>(x: &Tensor<f64, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tenths: [f32; 2] = [0.1, 0.2];
    let (steps, halves): ([i8; 2], (bf16, [f32; 1])) = ([100, 30], (0.5, [0.1]));
    let mixed = [1f32, 0.1];
    let mut sum = (tenths[0] + tenths[1]) as f64 + mixed[1] as f64 + halves.0 as f64 * halves.1[0] as f64;
    sum += (steps[0] + steps[1]) as f64;
    for step in steps {
        sum += (step + 100) as f64;
    }
    for step in [200u8, 1] {
        sum += (step + 100) as f64;
    }
    for step in [2_000_000_000, 1] {
        sum += (step + step) as f64;
    }
    y.store_masked(x.load_masked(y.index()) + sum);
}

#[test]
fn numbers_of_an_array_have_one_type() {
    let rounded = f64::from(0.1f32 + 0.2f32) + f64::from(0.1f32) + 0.5 * f64::from(0.1f32);
    let bytes = [100i8, 100, 30].iter().zip([30, 100, 100]).map(|(a, b)| f64::from(a.wrapping_add(b)));
    let rounded = bytes.chain([44.0, 101.0]).fold(rounded, |sum, step| sum + step);
    let sum =
        [2_000_000_000i32, 1].iter().fold(rounded, |sum, step| sum + f64::from(step.wrapping_add(*step)));
    let x = [1.0, -2.5, 0.0];
    check_exact!(of_their_array<B = 2>(x: x, [3]) -> f64, [3] => x.map(|x| x + sum));
}

/// What constants are made of may stand below them, and hides what is above the block. A logarithm is a `u32`, as in Rust.
#[tile_kernel]
fn of_constants_below<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    const FACTOR: i32 = 3;
    let inner = {
        let inner = SUM * FACTOR;
        const SUM: i32 = FACTOR + 1;
        const FACTOR: i32 = 10;
        inner
    };
    const LOG: usize = 32usize.ilog2() as usize;
    let logs = (x.extent(0) as u32 + 8usize.ilog2()) as i32 * LOG as i32;
    y.store_masked(x.load_masked(y.index()) * FACTOR + inner + logs);
}

#[test]
fn a_block_sees_all_its_constants() {
    let x = [1, -2, 0];
    check_exact!(of_constants_below<B = 2>(x: x, [3]) -> i32, [3] => x.map(|x| x * 3 + 110 + 6 * 5));
}

/// What one use of a variable says is the format of all: the constants that are compared are of f32.
#[tile_kernel]
fn threshold<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let w = 0.1;
    let t = x.load_masked(y.index()) * w;
    if w * 3.0 > 0.3 {
        y.store_masked(t + 100.0);
    } else {
        y.store_masked(t);
    }
}

/// The same of a format that Rust has no literals of, of numbers in a tuple, and of one that a branch chooses.
#[tile_kernel]
fn thresholds_of_halves<const B: usize>(x: &Tensor<bf16, n>, y: &mut Tensor<bf16, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let (w, shifts) = (0.1, [(0.3, 1), (0.7, 2)]);
    let chosen = if n > 2 { 0.5 } else { 0.25 };
    let mut sum = 0.0;
    for (shift, count) in shifts {
        sum += shift * chosen * count as bf16;
    }
    let t = x.load_masked(y.index()) * w + sum;
    y.store_masked(if w * 3.0 > 0.3 { t } else { t + 100.0 });
}

#[test]
fn a_variable_has_one_format_in_all_its_uses() {
    // In f32 a tenth three times isn't more than 0.3, in f64 it is.
    let x = [1.0f32, 2.0, 3.0];
    check_exact!(threshold<B = 2>(x: x, [3]) -> f32, [3] => x.map(|x| x * 0.1));

    let of = bf16::from_f32;
    let sum = [(0.3, 1.0), (0.7, 2.0)]
        .iter()
        .fold(of(0.0), |sum, &(shift, count)| sum + of(shift) * of(0.5) * of(count));
    let more = if of(0.1) * of(3.0) > of(0.3) { 0.0 } else { 100.0 };
    let x = [1.0, -2.0, 3.0].map(of);
    let expected = x.map(|x| (x * of(0.1) + sum + of(more)).to_f32());
    check_exact!(thresholds_of_halves<B = 2>(x: x, [3]) -> bf16, [3] => expected);
}

/// A counter is kept by a branch, and so the variable is of its type, in which a product doesn't wrap and a difference does.
#[tile_kernel]
fn place_of_best<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let parts = [t, t * 2.0, t * 3.0, t * 4.0];
    let (mut best, first) = (0, 0);
    for i in 0..4 {
        if parts[i].max(0).item() > 0.0 {
            best = i;
        }
    }
    let wrapped = if best - 1 > 5 { 1.0 } else { 0.0 };
    let later = x.load_masked([first]).max(0).item() as f64;
    y.store_masked(Tile::full([B], (best * 2_000_000_000) as f64 + wrapped + later));
}

#[test]
fn an_index_that_is_kept_stays_an_index() {
    check_exact!(place_of_best<B = 1>(x: [0.5f32], [1]) -> f64, [1] => [6e9 + 0.5]);
    check_exact!(place_of_best<B = 1>(x: [-0.5f32], [1]) -> f64, [1] => [1.0 - 0.5]);
}

/// Integers of which another use says the type: they shift, wrap and are as large as in that.
#[tile_kernel]
fn of_their_other_uses<const B: usize>(x: &Tensor<u8, n>, wide: i64, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let m = 0xF0;
    let t = x.load_masked(y.index());
    let low = (t & m).sum(0).item() as f64;
    let shifted = (m << 4) as f64 + (m >> 4) as f64;
    let opposite = if !m > 0 { 1000.0 } else { 0.0 };
    let k = 3_000_000_000;
    let large = if k > 5 { (wide + k) as f64 } else { 0.0 };
    let steps = 3;
    let mut counted = 0.0;
    for step in 0..steps {
        counted += (step * 2_000_000_000) as f64;
    }
    let sum = wide + steps;
    y.store_masked(Tile::full([B], low + shifted + opposite + large + counted + sum as f64));
}

#[test]
fn integers_have_the_type_of_their_other_uses() {
    for x in [0x3Au8, 0xFF] {
        let expected = f64::from(x & 0xF0) + 15.0 + 1000.0 + 3e9 + 7.0 + 6e9 + 10.0;
        super::Case {
            ir: of_their_other_uses::ir(),
            bindings: &[("B", Binding::Const(1))],
            arguments: vec![
                super::array(&[x], &[1]),
                Array::scalar(DType::I64, Literal::Int(7)),
                super::array(&[0f64], &[1]),
            ],
            output: 2,
            expected: vec![expected],
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &[x], [1])?;
                let mut y = Tensor::zeros(device, [1])?;
                of_their_other_uses::<1>(&x, 7, &mut y).launch()?;
                y.to_vec()
            },
        }
        .check();
    }
}

#[derive(TileStruct)]
struct Step {
    by: u8,
    at: i64,
}

/// Elements of an array have one type, those of one value that is repeated and what a closure gives among them.
#[tile_kernel]
fn of_arrays<const B: usize>(x: &Tensor<u8, n>, wide: i64, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let largest = x.load_masked(y.index()).max(0).item();
    let mut counts = [0; 3];
    counts[0] += largest;
    let mapped = [largest, largest].map(|_| 200);
    let steps = [Step { by: 200, at: 3_000_000_000 }, Step { by: 100, at: 1 }];
    let pairs = [[(1, 2), (3, 2_000_000_000)], [(5, 6), (200, 8)]];
    let (sum, at) = (pairs[0][0].0 + largest, pairs[1][0].1 + wide);
    let of_counts = counts[0] as f64 + (counts[1] - 1) as f64;
    let of_mapped = (mapped[0] + largest) as f64 + (mapped[1] + 100) as f64;
    let of_steps = (steps[1].by + largest + steps[0].by) as f64 + (steps[1].at + wide + steps[0].at) as f64;
    let of_pairs = sum as f64 + at as f64 + (pairs[1][1].0 * 2) as f64 + (pairs[0][1].1 * 3) as f64;
    y.store_masked(Tile::full([B], of_counts + of_mapped + of_steps + of_pairs));
}

#[test]
fn elements_of_arrays_have_one_type() {
    let (of_counts, of_mapped) = (5.0 + 255.0, 205.0 + 44.0);
    let of_steps = f64::from(5u8.wrapping_add(100).wrapping_add(200)) + 3e9 + 8.0;
    let of_pairs = 6.0 + 13.0 + f64::from(200u8.wrapping_mul(2)) + 6e9;
    super::Case {
        ir: of_arrays::ir(),
        bindings: &[("B", Binding::Const(1))],
        arguments: vec![
            super::array(&[5u8], &[1]),
            Array::scalar(DType::I64, Literal::Int(7)),
            super::array(&[0f64], &[1]),
        ],
        output: 2,
        expected: vec![of_counts + of_mapped + of_steps + of_pairs],
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &[5u8], [1])?;
            let mut y = Tensor::zeros(device, [1])?;
            of_arrays::<1>(&x, 7, &mut y).launch()?;
            y.to_vec()
        },
    }
    .check();
}

/// Digits that are nearest to one number of f32, and whose f64 lies halfway to the next.
#[allow(clippy::excessive_precision, reason = "these are the digits")]
#[tile_kernel]
fn halfway<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let (below, step) = (1.00000017881393432617187499, -1.00000017881393432617187499f32);
    y.store_masked(x.load_masked(y.index()) * below + (step + 1.00000017881393432617187499));
}

#[test]
#[expect(clippy::excessive_precision, reason = "these are the digits")]
fn literals_are_rounded_once() {
    let below = 1.00000017881393432617187499f32;
    check_exact!(halfway<B = 1>(x: [1.0f32], [1]) -> f32, [1] => [below]);
}

/// In each turn the name is another variable, whose type the arm decides that isn't taken in the other turn.
#[tile_kernel]
fn by_turn<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let parts = [t, t];
    let mut sum = t * 0.0;
    for i in 0..2 {
        let w = 0.1;
        match i {
            0 => sum += parts[i] * w,
            _ => {
                if w * 3.0 > 0.3 {
                    sum += 100.0;
                }
            }
        }
    }
    y.store_masked(sum);
}

#[test]
fn a_turns_variable_has_the_type_that_any_arm_decides() {
    let x = [1.0f32, 2.0, 3.0];
    check_exact!(by_turn<B = 2>(x: x, [3]) -> f32, [3] => x.map(|x| x * 0.1));
}

/// The arms' literals have one type, whichever is taken.
#[tile_kernel]
fn scaled_by_mode<T: Float>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    const MODE: usize = 1;
    let x = x.partition_view([2]);
    let mut y = y.partition_view_mut([2]);
    let w = match MODE {
        0 => 0.5,
        1 => 0.25,
        _ => -1.0,
    };
    y.store_masked(x.load_masked(y.index()) * w);
}

#[test]
fn literals_of_arms_have_the_type_of_the_one_that_is_taken() {
    for (device, label) in super::devices() {
        let [x, expected] = [[1.0, 2.0, 3.0], [0.25, 0.5, 0.75]].map(|x: [f32; 3]| x.map(bf16::from_f32));
        let x = Tensor::from_slice(&device, &x, [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        scaled_by_mode(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

/// How much a view is padded by is a `usize`, and so is the variable.
#[tile_kernel]
fn padded_by_a_variable<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f64, m>) {
    let k = 3;
    let x = x.pad([(k, 0)]).partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let far = (k * 1_000_000_000) as f64;
    y.store_masked(x.load_masked(y.index()).cast::<f64>() + far);
}

#[test]
fn counts_of_movements_decide_the_type_of_a_variable() {
    check_exact!(padded_by_a_variable<B = 4>(x: [1.0f32, 2.0], [2]) -> f64, [5] => [3e9, 3e9, 3e9, 3e9 + 1.0, 3e9 + 2.0]);
}

#[derive(TileStruct)]
struct Generator {
    state: u32,
}

/// A struct that the kernel doesn't see, of whose field the literal says the type.
#[tile_kernel]
fn drawn_from_a_field<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut generator = Generator { state: 1000u32 };
    generator.state = generator.state * 1_664_525 + 1_013_904_223;
    y.store_masked(x.load_masked(y.index()) + (generator.state >> 16) as i32);
}

#[test]
fn fields_of_structs_that_are_not_seen_have_the_types_of_their_literals() {
    check_exact!(drawn_from_a_field<B = 4>(x: [0, 1], [2]) -> i32, [2] => [40869, 40870]);
}

/// Integers that become floats: a half of two neighbours' distance and a little more above the lower one. By way of f64 the
/// little is lost, and the even neighbour is the lower one.
#[tile_kernel]
fn large<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n, 4>, z: &mut Tensor<bf16, n, 1>) {
    const WIDE: i64 = 9007199791611905;
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B, 4]);
    let mut z = z.partition_view_mut([B, 1]);
    let [i, _] = y.index();
    let t = x.load_masked([i]).unsqueeze(1);
    let parts = [t + 9007199791611905f32, t + -9007199791611905f32, t + WIDE as f32, t + WIDE as f64 as f32];
    y.store_masked(cat(parts, 1));
    z.store_masked(Tile::full([B, 1], 36169534507319297i64 as bf16) + WIDE as bf16 * 0.0);
}

#[test]
fn integers_that_become_floats_are_rounded_once() {
    let row = [
        9007199791611905i64 as f32,
        -9007199791611905i64 as f32,
        9007199791611905i64 as f32,
        9007199254740992.0,
    ];
    assert_eq!(row[0], 9007200328482816.0);
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[0f32], [1]).unwrap();
        let mut y = Tensor::zeros(&device, [1, 4]).unwrap();
        let mut z = Tensor::zeros(&device, [1, 1]).unwrap();
        large::<1>(&x, &mut y, &mut z).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), row, "{label}");
        assert_eq!(z.to_vec().unwrap(), [bf16::from_f64(36310271995674624.0)], "{label}");
    }
}

/// Counters that nothing but an index, an offset or a distance uses: those of slices and random numbers may be of any type in
/// Rust, which makes them `i32`, and a number is rotated and shifted by a `u32`.
#[tile_kernel]
fn of_undecided_counters(x: &Tensor<f32, 8>, seed: u32, y: &mut Tensor<f64, 8>) {
    let t = x.partition_view([8]).load([0]);
    let mut taken = Tile::zeros([1]);
    for k in 0..5 {
        taken += t.take(k, 0) * (k - 2) as f32;
    }
    let mut outside = t.take(-1, 0);
    let first = -3;
    for k in first..2 {
        outside += t.take(k, 0);
    }
    let mut drawn = Tile::zeros([1]);
    for k in 0..5 {
        let bits = Tile::<u32, 1>::random_bits([1], 7, k) & 255;
        drawn += bits.cast::<f64>() * ((k - 3) as f64);
    }
    let mut bits = seed;
    let mut distances = 0.0;
    for k in 0..4 {
        bits = bits.rotate_left(k) ^ bits.wrapping_shr(k);
        distances += (k - 3) as f64;
    }
    let numbers = [taken.cast::<f64>(), outside.cast(), drawn, Tile::full([1], bits as f64 + distances)];
    let mut y = y.partition_view_mut([8]);
    y.store(cat(numbers, 0).pad([(0, 4)], 0.0));
}

#[test]
fn counters_have_the_types_that_rust_gives_them() {
    let x: [f32; 8] = std::array::from_fn(|i| i as f32);
    let first = 0x1234_5678u32;
    let random = |offset: u64| f64::from(Tile::<u32, 1>::random_bits([1], 7, offset).to_vec()[0] & 255);
    let drawn: f64 = (0..5).map(|k| random(k) * (k as f64 - 3.0)).sum();
    let bits = (0..4).fold(first, |bits, k| bits.rotate_left(k) ^ bits.wrapping_shr(k));
    let distances: f64 = (0..4u32).map(|k| f64::from(k.wrapping_sub(3))).sum();
    let expected = [10.0, 1.0, drawn, f64::from(bits) + distances, 0.0, 0.0, 0.0, 0.0];
    check_kernel!(of_undecided_counters<>(
        input x: (x, [8]), number seed: (first), output y: (vec![0f64; 8], [8] => expected, 0.0),
    ));
}

/// Constants of formats that Rust has no literals of, one of them an array, and one of 8 bits.
#[tile_kernel]
fn constants_of_formats(x: &Tensor<u8, n>, y: &mut Tensor<f16, n>) {
    #![allow(non_upper_case_globals)]
    const SCALE: bf16 = bf16::of(0.1);
    const CODES: [f16; 4] = [-1.0, -0.5, 0.5, 65504.0];
    const eighth: (f8e4m3fn, f16) = (-448.0, 0.125);
    let mut y = y.partition_view_mut([4]);
    let t = x.partition_view([4]).load_masked(y.index()).lookup(CODES);
    y.store_masked(t * eighth.1 + (SCALE as f16) + (eighth.0 as f16));
}

#[test]
fn constants_have_formats_that_rust_has_no_literals_of() {
    let (x, codes) = ([0u8, 1, 2, 3], [-1.0, -0.5, 0.5, 65504.0].map(f16::from_f32));
    let tenth = f16::from_f32(bf16::from_f32(0.1).to_f32());
    let one = |x: u8| (codes[x as usize] * f16::from_f32(0.125) + tenth) + f16::from_f32(-448.0);
    check_exact!(constants_of_formats<>(x: x, [4]) -> f16, [4] => x.map(|x| one(x).to_f32()));
}

/// The same of a module, for its kernels and functions.
#[tile_kernels]
mod formats {
    #![allow(non_upper_case_globals)]
    use tile::prelude::*;

    const SCALE: bf16 = bf16::of(0.1);
    const CODES: [f16; 4] = [-1.0, f16::of(-0.5), 0.5, (65504.0)];
    const eighth: (f8e4m3fn, f16) = (-448.0, 0.125);
    const ONES: [[bf16; 2]; 1] = [[1.0; 2]; 1];
    const LEAST: f32 = 0.25;

    #[tile_fn]
    fn scaled(x: Tile<f16, 1>) -> Tile<f16, 1> {
        x * eighth.1 + (SCALE * ONES[0][1]) as f16
    }

    #[tile_kernel]
    pub(crate) fn constants(x: &Tensor<u8, n>, y: &mut Tensor<f16, n>) {
        let mut y = y.partition_view_mut([4]);
        let t = x.partition_view([4]).load_masked(y.index()).lookup(CODES);
        y.store_masked(scaled(t) + (eighth.0 as f16) + (LEAST as f16) * 0.0);
    }
}

#[test]
fn constants_of_modules_have_formats_that_rust_has_no_literals_of() {
    use formats::constants;
    let (x, codes) = ([0u8, 1, 2, 3], [-1.0, -0.5, 0.5, 65504.0].map(f16::from_f32));
    let tenth = f16::from_f32(bf16::from_f32(0.1).to_f32());
    let one = |x: u8| (codes[x as usize] * f16::from_f32(0.125) + tenth) + f16::from_f32(-448.0);
    check_exact!(constants<>(x: x, [4]) -> f16, [4] => x.map(|x| one(x).to_f32()));
}
