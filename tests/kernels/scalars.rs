//! Methods and constants of Rust's numbers, on scalars.

use super::whole::check_kernel;
use super::{Case, array, check_exact, numbers, widen};
use tile::ir::ops::Literal;
use tile::ir::{Array, Binding, DType};
use tile::prelude::*;

#[tile_fn]
fn of_floats(s: f32) -> f32 {
    let bits = s.to_bits() ^ (1 << (u32::BITS - 1));
    let negated = f32::from_bits(bits);
    negated.powi(3) + s.powi(-2) + s.powi(0) + s.clamp(-1.5, 2.0) + f32::from_bits(0x3f80_0000)
}

#[tile_kernel]
fn methods<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    // The tile before, of the first one itself.
    let before = x.load_masked([(i + 2).clamp(3, x.tiles(0) + 2) - 3]);
    let s = x.load_masked([i]).sum(0).item();
    let k = ((s as i32) - 3).clamp(-2, 1) as f32;
    let nan = f32::NAN.clamp(0.0, 1.0);
    let known = 7.clamp(0, 5) as f32 + (s.abs() * 0.0 + 1.0).ln();
    let constants = f32::MIN_POSITIVE * 0.0 + (b'a' as f32) + if nan.is_nan() { 100.0 } else { 0.0 };
    y.store_masked(before * 1000.0 + of_floats(s) + k * 10.0 + known + constants);
}

#[test]
fn scalars_have_methods_of_rusts_numbers() {
    let x = [1.0f32, -2.0, 4.0, 0.5];
    let expected: Vec<f32> = (0..4)
        .map(|i: usize| {
            let s = x[i];
            let of_floats = (-s).powi(3) + s.powi(-2) + 1.0 + s.clamp(-1.5, 2.0) + 1.0;
            let k = ((s as i32) - 3).clamp(-2, 1) as f32;
            x[i.saturating_sub(1)] * 1000.0 + of_floats + k * 10.0 + 5.0 + 97.0 + 100.0
        })
        .collect();
    check_exact!(methods<B = 1>(x: x, [4]) -> f32, [4] => expected);
}

/// Powers of numbers of 16 bits, each product of which is rounded to their format.
#[tile_kernel]
fn narrow_powers(x: &Tensor<bf16, n>, y: &mut Tensor<bf16, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let s = x.load_masked(y.index()).item();
    y.store_masked(x.load_masked(y.index()).powi(5) - s.powi(5) + s.powi(3) + s.powi(-2) + s.powi(0));
}

#[test]
fn powers_of_narrow_numbers_are_rounded_as_those_of_tiles() {
    let x: Vec<bf16> = numbers(9, 3).into_iter().map(|x: f32| bf16::from_f32(x + 1.3)).collect();
    let one = |&x: &bf16| {
        let square = x * x;
        square * x + bf16::ONE / square + bf16::ONE
    };
    let expected: Vec<bf16> = x.iter().map(one).collect();
    check_exact!(narrow_powers<>(x: x, [9]) -> bf16, [9] => expected);
}

/// The tile behind, of the last one itself, and another, whose number is the larger of two sizes.
#[tile_kernel]
fn neighbours<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let behind = min(i + 1, x.tiles(0) - 1);
    y.store_masked(1000 * x.load_masked([behind]) + x.load_masked([max(n / 8, min(i, 1))]));
}

#[test]
fn sizes_have_a_least_and_a_largest_one() {
    for n in [4usize, 11, 16] {
        let x: Vec<i32> = (1..=n as i32).collect();
        let of_tile = |tile: usize, place: usize| x.get(4 * tile + place).copied().unwrap_or(0);
        let last = n.div_ceil(4) - 1;
        let expected: Vec<i32> = (0..n)
            .map(|i| {
                1000 * of_tile((i / 4 + 1).min(last), i % 4) + of_tile((n / 8).max((i / 4).min(1)), i % 4)
            })
            .collect();
        check_exact!(neighbours<B = 4>(x: x, [n]) -> i32, [n] => expected);
    }
}

/// A power of a number and of the elements of a tile.
#[tile_kernel]
fn powers<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(x.powi(7) - x.sum(0).item().powi(7));
}

/// Rust's own `powi` multiplies in another order, which rounds otherwise.
#[test]
fn powers_of_numbers_are_those_of_tiles() {
    let x: Vec<f32> = (0..40u8).map(|i| 0.8 + f32::from(i) * 0.013).collect();
    check_exact!(powers<B = 1>(x: x, [40]) -> f32, [40] => vec![0.0f32; 40]);
}

#[tile_fn]
fn inverses<T: Float>(x: T, part: T) -> [T; 3] {
    [x.acosh(), x.asinh(), part.atanh()]
}

/// Inverse hyperbolic functions of a number: as methods in a kernel, one of a reference, and in a function.
#[tile_kernel]
fn inverse_functions(x: &Tensor<f32, n>, y: &mut Tensor<f32, 6, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([6, 1]);
    let [_, i] = y.index();
    let s = x.load([i]).item();
    let part = -0.9999 / s;
    let [first, second, third] = inverses(s, part);
    let all = [s.acosh(), s.asinh(), [part].iter().map(|part| part.atanh()).sum(), first, second, third];
    y.store(stack(all.map(|number| Tile::full([1], number)), 0));
}

/// Near one Rust's own `acosh` loses half of the digits, near −1 its `atanh` loses some, and of what has no finite square both
/// others lose all.
#[test]
fn inverse_functions_of_numbers_keep_their_digits() {
    let x = [1.0f32, 1.000_001, 1.5, 70.0, 2e38];
    let acosh = |x: f64| ((x - 1.0) + ((x - 1.0) * (x + 1.0)).sqrt()).ln_1p();
    let atanh = |x: f64| (2.0 * x / (1.0 - x)).ln_1p() / 2.0;
    let functions: [&dyn Fn(f32) -> f64; 3] =
        [&|x| acosh(f64::from(x)), &|x| f64::from(x).asinh(), &|x| atanh(f64::from(-0.9999 / x))];
    let values = functions.iter().chain(&functions).flat_map(|of| x.iter().map(|&x| of(x)));
    let expected: Vec<f64> = values.collect();
    let zeros = [0f32; 6 * 5];
    check_kernel!(inverse_functions<>(
        input x: (x, [5]),
        output y: (zeros, [6, 5] => expected, 4e-7),
    ));
}

/// Methods that panic in Rust, or that it has of no stable name, of the least number, of a divisor that is 0, and of bounds that
/// are the other way round.
#[tile_kernel]
fn partial<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let k = x.load_masked(y.index()).max(0).item();
    let sum = k.abs() as f64 + k.rem_euclid(0) as f64 + (k % 7).div_floor(-2) as f64;
    let clamped = k.clamp(5, 1) as f64 + (k as f32).clamp(2.0, -1.0) as f64;
    let (byte, wide) = (-128i8, -9223372036854775808i64);
    let least = byte as f64 + (wide as f64) * 0.0;
    let wrapped = [-1, 300].map(|v| v as u8 as f64);
    y.store_masked(Tile::full([B], sum + clamped + least + wrapped[0] * wrapped[1]));
}

#[test]
fn methods_of_numbers_have_values_where_rusts_panic() {
    for (k, quotient) in [(i32::MIN, 1.0), (-5, 2.0), (4, -2.0), (i32::MAX, -1.0)] {
        let sum = f64::from(k.wrapping_abs()) + f64::from(k) + quotient;
        let expected = sum + (1.0 - 1.0) - 128.0 + 255.0 * 44.0;
        check_exact!(partial<B = 1>(x: [k], [1]) -> f64, [1] => [expected]);
    }
}

/// Angles in turns, of both formats that Rust's library has constants of.
#[tile_kernel]
fn turns<const B: usize>(x: &Tensor<f64, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    y.store_masked(t * std::f64::consts::TAU - core::f64::consts::FRAC_PI_2 * f64::EPSILON);
}

#[test]
fn constants_are_those_of_rusts_library() {
    use std::f64::consts::{FRAC_PI_2, TAU};
    let x = [0.25, 1.0, -3.5];
    check_exact!(turns<B = 2>(x: x, [3]) -> f64, [3] => x.map(|x| x * TAU - FRAC_PI_2 * f64::EPSILON));
}

#[tile_kernel]
fn rounded_up(y: &mut Tensor<f32, n>, by: usize) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let (tiles, turns) = (n.div_ceil(by), 7.div_ceil(by));
    let own = (i + 4).div_ceil(by) + by.div_ceil(n);
    y.store_masked(Tile::full([4], (tiles * 100 + turns * 10 + own) as f32));
}

#[test]
fn quotients_are_rounded_up_by_a_number_that_is_computed() {
    for (device, label) in super::devices() {
        // By 0 it is 0, where Rust's own panics.
        for (by, expected) in [(1, 1077.0), (3, 433.0), (10, 112.0), (100, 121.0), (0, 0.0)] {
            let mut y = Tensor::zeros(&device, [10]).unwrap();
            rounded_up(&mut y, by).launch().unwrap();
            assert_eq!(y.to_vec().unwrap()[9], expected, "{label}: {by}");
        }
    }
}

/// A function's scalars have the same values as a kernel's.
#[tile_fn]
fn partial_of(k: i32, by: usize) -> f64 {
    let sum = k.abs() as f64 + k.rem_euclid(0) as f64 + (k % 7).div_floor(-2) as f64 + by.div_ceil(0) as f64;
    sum + k.clamp(5, 1) as f64 + (k as f32).clamp(2.0, -1.0) as f64
}

#[tile_kernel]
fn partial_in_function<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let k = x.load_masked([i]).max(0).item();
    y.store_masked(Tile::full([B], partial_of(k, i + 1)));
}

#[test]
fn functions_have_values_where_rusts_methods_panic() {
    for (k, quotient) in [(i32::MIN, 1.0), (-5, 2.0), (4, -2.0), (i32::MAX, -1.0)] {
        let expected = f64::from(k.wrapping_abs()) + f64::from(k) + quotient + 1.0 - 1.0;
        check_exact!(partial_in_function<B = 1>(x: [k], [1]) -> f64, [1] => [expected]);
    }
}

/// The methods of tiles, of a struct and of a type parameter are found beside those of scalars.
#[tile_kernels]
mod named_alike {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct Pair {
        low: f32,
        high: f32,
    }

    #[tile_fn]
    impl Pair {
        fn abs(self) -> f32 {
            self.high.max(-self.low)
        }

        fn clamp(&self, x: f32) -> f32 {
            x.clamp(self.low, self.high)
        }
    }

    #[tile_fn]
    fn seventh<T: Float>(x: Tile<T, 1>, bound: T) -> Tile<T, 1> {
        x.abs().clamp(T::ZERO, bound).powi(7) + bound.abs()
    }

    #[tile_fn]
    fn of_all(x: Tile<f32, 1>) -> Tile<f32, 1> {
        let pair = Pair { low: -2.0, high: 1.5 };
        let s = x.sum(0).item();
        let least = [s, 3.0].iter().min().expect("there are two").powi(3);
        seventh(x, 2.0) - s.abs().min(2.0).powi(7) + pair.abs() + pair.clamp(s) + least
    }

    #[tile_kernel]
    pub(crate) fn alike<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(of_all(x.load_masked(y.index())));
    }
}

#[test]
fn functions_have_the_methods_of_tiles_and_structs_too() {
    use named_alike::alike;
    let x: Vec<f32> = (0..40u8).map(|i| f32::from(i) * 0.113 - 2.5).collect();
    let power = |x: f32, exponent| (1..exponent).fold(x, |power, _| power * x);
    let expected: Vec<f64> =
        x.iter().map(|&x| f64::from(2.0 + 2.0 + x.clamp(-2.0, 1.5) + power(x.min(3.0), 3))).collect();
    let bindings = &[("B", tile::ir::Binding::Const(1))];
    super::check_vectors(alike::ir(), bindings, &x, expected, 1e-5, |x, y| alike::<1>(x, y).launch());
}

/// What Rust's library leaves open: which of two zeros is the larger.
#[tile_fn]
fn inverse_of_larger(s: f32) -> f32 {
    1.0 / s.max(0.0)
}

#[tile_kernel]
fn signs(x: &Tensor<f32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let s = x.load_masked(y.index()).item();
    let (largest, least) = (1.0 / s.max(0.0), 1.0 / (-s).min(s));
    let of_kernel = if largest > 0.0 && least < 0.0 { 1 } else { 0 };
    let of_function = if inverse_of_larger(s) > 0.0 { 2 } else { 0 };
    y.store_masked(Tile::full([1], of_kernel + of_function));
}

#[test]
fn zeros_are_ordered_by_their_signs() {
    check_exact!(signs<>(x: [0.0f32, -0.0], [2]) -> i32, [2] => [3, 3]);
}

/// Rust's methods take references to numbers.
#[tile_kernel]
fn by_largest_weight(weights: [f32; 3], x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut largest = weights[0];
    for w in &weights {
        largest = w.max(largest);
    }
    y.store_masked(x.load_masked(y.index()) * largest);
}

#[test]
fn a_reference_to_a_number_has_its_methods() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        by_largest_weight([1.0, 4.0, -8.0], &x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [4.0, 8.0], "{label}");
    }
}

#[tile_fn]
fn turned<T: Float>(a: Tile<T, 1>, b: Tile<T, 1>) -> Tile<T, 1> {
    let mut parts = [a, b];
    for i in 0..1 {
        parts[i + 1] *= -1.0;
    }
    parts[0] + parts[1]
}

#[tile_kernel]
fn less_three_times<T: Float>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let t = x.load_masked(y.index());
    y.store_masked(turned(t, t * 3.0));
}

#[test]
fn a_part_is_multiplied_by_a_literal_of_any_format() {
    for (device, label) in super::devices() {
        let [x, expected] = [[1.0, 2.0], [-2.0, -4.0]].map(|x: [f32; 2]| x.map(bf16::from_f32));
        let x = Tensor::from_slice(&device, &x, [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        less_three_times(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

#[tile_fn]
fn quotient_and_remainder(k: i32, by: i32) -> i32 {
    k.wrapping_div(by) * 10 + k.wrapping_rem(by)
}

/// Methods whose names only promise not to panic where a result doesn't fit.
#[tile_kernel]
fn wrapping(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let t = x.load_masked(y.index());
    let d = t.item();
    let mut sum = 7i32.wrapping_div(d) * 10 + 7i32.wrapping_rem(d) + quotient_and_remainder(5, d) * 100;
    for k in &[i32::MIN, 3] {
        sum += k.wrapping_div(d) + k.wrapping_rem(d);
    }
    y.store_masked(sum + t.wrapping_div(0) + t.wrapping_rem(0));
}

#[test]
fn methods_that_wrap_have_values_where_the_divisor_is_0() {
    let of = |k: i32, d: i32| if d == 0 { (0, k) } else { (k.wrapping_div(d), k.wrapping_rem(d)) };
    let x = [0, 2, -1];
    let expected = x.map(|d| {
        let [(a, b), (c, e), (f, g), (h, i)] = [7, 5, i32::MIN, 3].map(|k| of(k, d));
        let sum = a * 10 + b + (c * 10 + e) * 100;
        sum.wrapping_add(f).wrapping_add(g).wrapping_add(h + i).wrapping_add(d)
    });
    check_exact!(wrapping<>(x: x, [3]) -> i32, [3] => expected);
}

/// Arguments of methods that count themselves.
#[tile_kernel]
fn counted(x: i32, counts: &mut Tensor<i32, 1>, y: &mut Tensor<i32, 3>) {
    let counts = counts.atomic_view();
    let most = x.max(counts.fetch_add([0], 1, Relaxed, DeviceScope));
    let mut k = 0;
    let least = x.min({
        k += 1;
        k
    });
    y.partition_view_mut([3]).store(cat([most, least, k].map(|number| Tile::full([1], number)), 0));
}

#[test]
fn an_argument_of_a_method_is_computed_once() {
    check_kernel!(counted<>(
        number x: (3), output counts: (vec![5i32], [1] => [6i32], 0.0), output y: (vec![0i32; 3], [3] => [5i32, 1, 1], 0.0),
    ));
}

/// Powers of numbers that are known, some of which wrap. `b` is 1.
#[tile_kernel]
fn known_powers(x: &Tensor<u8, 1>, y: &mut Tensor<i32, 3>) {
    let b = x.partition_view([1]).load([0]).item();
    let (mut sum, mut squares) = (b, 0);
    let mut signs: i32 = 0;
    for k in [100, 200] {
        sum += k;
        squares = squares * 1000 + k.pow(2) as i32;
    }
    for k in [-1, 0, 1] {
        signs = signs * 10 + k;
        signs += k.pow(3) + k.pow(1_000_000);
    }
    let sums = [sum as i32, squares, signs];
    y.partition_view_mut([3]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
}

#[test]
fn powers_wrap_as_products_do() {
    let expected = [45, 16_064, -97];
    check_exact!(known_powers<>(x: [1u8], [1]) -> i32, [3] => expected);
}

/// Numbers that are written out and converted, which are of the type that they are converted to.
#[expect(clippy::unnecessary_cast, reason = "what rustc takes them for is the test")]
#[tile_kernel]
fn written_and_converted(y: &mut Tensor<f64, 7>) {
    let numbers = [
        (!0xF000_0000 as u32) as f64,
        16777217.000000001 as f32 as f64,
        -(16777217.000000001) as f32 as f64,
        (!0 as usize) as f64,
        (!(5) as u8) as f64,
        -9_223_372_036_854_775_808 as i64 as f64,
        (1 + 16_777_216) as f32 as f64,
    ];
    y.partition_view_mut([7]).store(cat(numbers.map(|number| Tile::full([1], number)), 0));
}

#[test]
fn literals_are_of_the_type_that_they_are_converted_to() {
    let expected =
        [268_435_455.0, 16_777_218.0, -16_777_218.0, 2f64.powi(64), 250.0, -2f64.powi(63), 16_777_216.0];
    check_exact!(written_and_converted<>() -> f64, [7] => expected);
}

/// Methods that a number of Rust's doesn't have, as one of a reference and in a function, too.
#[tile_fn]
fn beyond_rust(x: f32, y: f32) -> f32 {
    (x.rsqrt() + x.sigmoid() + x.silu() + x.gelu())
        + (y.exp10() + y.erf() + y.erfc())
        + x.maximum(y) * x.minimum(y)
}

#[tile_kernel]
fn methods_beyond_rust(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, k: i32) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let s = x.load_masked(y.index()).item();
    let q = -0.25f32;
    let here = (s.rsqrt() + s.sigmoid() + s.silu() + s.gelu())
        + (q.exp10() + q.erf() + q.erfc())
        + s.maximum(q) * s.minimum(q);
    let roots: f32 = [s, q].iter().map(|x| x.abs().rsqrt()).sum();
    let high = (k.mul_hi(1 << 20) + k.div_floor(-3)) as f32;
    y.store_masked(Tile::full([1], here + beyond_rust(s, q) + roots + high + s.ln() + s.powf(q)));
}

#[test]
fn numbers_have_the_methods_of_tiles() {
    let x = [0.5f32, 1.0, 4.0];
    let one = |&x: &f32| {
        let (x, q) = (f64::from(x), -0.25f64);
        let sigmoid = 1.0 / (1.0 + (-x).exp());
        let erf = -0.276_326_390_168_236_93;
        let gelu =
            [(0.5, 0.345_731_230_630_818), (1.0, 0.841_344_746_068_542_9), (4.0, 3.999_873_315_007_181)];
        let gelu = gelu.iter().find(|(at, _)| *at == x).expect("it is there").1;
        let here =
            x.sqrt().recip() + sigmoid + x * sigmoid + gelu + 10f64.powf(q) + erf + (1.0 - erf) + x * q;
        2.0 * here + x.sqrt().recip() + 2.0 + f64::from(-334) + x.ln() + x.powf(q)
    };
    let expected: Vec<f64> = x.iter().map(one).collect();
    let zeros = [0f32; 3];
    check_kernel!(methods_beyond_rust<>(
        input x: (x, [3]),
        output y: (zeros, [3] => expected, 2e-6),
        number k: (1000i32),
    ));
}

/// The methods of numbers of formats that Rust has none of, and of a type parameter.
#[tile_fn]
fn of_any_float<T: Float>(x: T, y: T) -> T {
    let root = if x.is_finite() { x.abs().sqrt() } else { x };
    root.mul_add(y, x.exp()).max(y).floor() + x.hypot(y).round()
}

#[tile_kernel]
fn methods_of_formats<T: Float>(x: &Tensor<T, n>, h: &Tensor<bf16, n>, y: &mut Tensor<T, n>) {
    let (x, h) = (x.partition_view([1]), h.partition_view([1]));
    let mut y = y.partition_view_mut([1]);
    let (s, h) = (x.load_masked(y.index()).item(), h.load_masked(y.index()).item());
    let root = if s.is_finite() { s.abs().sqrt() } else { s };
    let here = root.mul_add(s, s.exp()).max(s).floor() + s.hypot(s).round();
    let half = h.sqrt().mul_add(h, h.recip());
    y.store_masked(Tile::full([1], here + of_any_float(s, s) + (half as f32) as T));
}

#[test]
fn numbers_of_all_formats_have_methods() {
    let one = |x: f64| 2.0 * ((x.sqrt() * x + x.exp()).floor() + x.hypot(x).round()) + 8.25;
    let x = [1.0, 2.0, 0.25];
    let (of_f32, h) = (x.map(|x| x as f32), [bf16::from_f32(4.0); 3]);
    Case {
        ir: methods_of_formats::ir(),
        bindings: &[("T", Binding::Elem(DType::F32))],
        arguments: vec![array(&of_f32, &[3]), array(&h, &[3]), array(&[0f32; 3], &[3])],
        output: 2,
        expected: x.iter().map(|&x| one(x)).collect(),
        tolerance: 0.0,
        run: &|device| {
            let (x, h) = (Tensor::from_slice(device, &of_f32, [3])?, Tensor::from_slice(device, &h, [3])?);
            let mut y = Tensor::zeros(device, [3])?;
            methods_of_formats::<f32>(&x, &h, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Bits of a type parameter: a scalar on the left of a tile, assignments, counts, and methods of integers.
#[tile_fn]
fn bits_of<T: Int>(t: Tile<T, 1>, mask: T) -> Tile<T, 1> {
    let mut m = mask;
    m |= 16;
    m ^= T::ONE;
    let (wrapped, overflow) = m.overflowing_mul(16);
    let counted = m.count_ones() as T + if overflow { wrapped.wrapping_sub(0) } else { T::ONE };
    (mask & t) + (m | t) + (m ^ t) + (counted + m.rotate_left(1) + m.saturating_add(mask).wrapping_mul(mask))
}

#[tile_kernel]
fn bits_of_scalars<T: Int>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, mask: T) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let t = x.load_masked(y.index());
    let mut m = mask;
    m |= 16;
    m ^= T::ONE;
    let (wrapped, overflow) = m.overflowing_mul(16);
    let counted = m.count_ones() as T + if overflow { wrapped } else { 1 };
    let here = (mask & t)
        + (m | t)
        + (m ^ t)
        + (counted + m.rotate_left(1) + m.saturating_add(mask).wrapping_mul(mask));
    y.store_masked(here + bits_of(t, mask));
}

#[test]
fn scalars_of_a_type_parameter_have_the_operators_of_bits() {
    let x = [0u8, 1, 6, 255];
    let (mask, m) = (6u8, (6u8 | 16) ^ 1);
    let one = |&x: &u8| {
        let scalar = 4
            + u32::from(m.wrapping_mul(16))
            + u32::from(m.rotate_left(1))
            + u32::from(m.saturating_add(mask).wrapping_mul(mask));
        let here = u32::from(mask & x) + u32::from(m | x) + u32::from(m ^ x) + scalar;
        f64::from((2 * here) as u8)
    };
    Case {
        ir: bits_of_scalars::ir(),
        bindings: &[("T", Binding::Elem(DType::U8))],
        arguments: vec![array(&x, &[4]), array(&[0u8; 4], &[4]), array(&[mask], &[])],
        output: 1,
        expected: x.iter().map(one).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [4])?;
            let mut y = Tensor::zeros(device, [4])?;
            bits_of_scalars::<u8>(&x, &mut y, mask).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[tile_fn]
fn of_sizes(i: usize, w: usize) -> usize {
    div_floor(i + 7, w) + div_ceil(i, 2) + rem_euclid(i, 2) + count_ones(i) + max(i, w) + mul_hi(i, w)
}

/// Functions of sizes, of those that are known as of those that are computed, and in a function.
#[tile_kernel]
fn functions_of_sizes(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>, w: usize) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let [i] = y.index();
    let mut s = Tile::zeros([1]);
    for p in saturating_sub(i, w)..i + 1 {
        s += x.load_masked([p]);
    }
    let computed =
        div_floor(i + 7, w) + div_ceil(i, 2) + rem_euclid(i, 2) + count_ones(i) + max(i, w) + mul_hi(i, w);
    let known = min(n, 5) + div_ceil(n, 2);
    y.store_masked(s + (computed + known + of_sizes(i, w)) as i32);
}

#[test]
fn sizes_have_the_functions_of_integers() {
    let x = [1, 2, 3, 4];
    let one = |i: usize| {
        let sum: i32 = x[i.saturating_sub(2)..=i].iter().sum();
        let computed = (i + 7) / 2 + i.div_ceil(2) + i % 2 + i.count_ones() as usize + i.max(2);
        f64::from(sum) + (2 * computed + 4 + 2) as f64
    };
    Case {
        ir: functions_of_sizes::ir(),
        bindings: &[],
        arguments: vec![
            array(&x, &[4]),
            array(&[0i32; 4], &[4]),
            Array::scalar(DType::Index, Literal::Int(2)),
        ],
        output: 1,
        expected: (0..4).map(one).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [4])?;
            let mut y = Tensor::zeros(device, [4])?;
            functions_of_sizes(&x, &mut y, 2).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}
