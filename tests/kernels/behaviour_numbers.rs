//! What numbers do at their edges, as programs and the results that they must have: overflow, division, shifts,
//! NaN, rounding, conversions, products. The numbering is that of the list of behaviours that peers disagree on.

use super::check_exact;
use tile::prelude::*;

#[tile_kernel]
fn add_i32<const B: usize>(x: &Tensor<i32, n>, w: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) + w.load_masked(y.index()));
}

#[tile_kernel]
fn add_u8<const B: usize>(x: &Tensor<u8, n>, y: &mut Tensor<u8, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) + 1);
}

#[tile_kernel]
fn negate_i8<const B: usize>(x: &Tensor<i8, n>, y: &mut Tensor<i8, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(-x.load_masked(y.index()));
}

#[tile_kernel]
fn magnitude_i32<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()).abs());
}

#[test]
fn case_10_integers_wrap() {
    check_exact!(add_i32<B = 4>(x: [i32::MAX, i32::MIN], [2]; w: [1, -1], [2]) -> i32, [2] => [i32::MIN, i32::MAX]);
    check_exact!(add_u8<B = 4>(x: [255u8, 0], [2]) -> u8, [2] => [0u8, 1]);
    check_exact!(negate_i8<B = 4>(x: [-128i8, 5], [2]) -> i8, [2] => [-128i8, -5]);
    check_exact!(magnitude_i32<B = 4>(x: [i32::MIN, -7], [2]) -> i32, [2] => [i32::MIN, 7]);
}

/// Rows: quotients truncated, rounded down, rounded up; remainders of Rust's `%` and never negative.
#[tile_kernel]
fn divisions<const B: usize>(x: &Tensor<i32, n>, w: &Tensor<i32, n>, y: &mut Tensor<i32, 5, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([5, B]);
    let [_, j] = y.index();
    let (a, b) = (x.load_masked([j]).reshape([1, B]), w.load_masked([j]).reshape([1, B]));
    let row = Tile::<i32, 2>::iota([5, B], 0);
    let quotients = select(row == 0, a / b, select(row == 1, div_floor(a, b), div_ceil(a, b)));
    y.store_masked(select(row < 3, quotients, select(row == 3, a % b, a.rem_euclid(b))));
}

#[test]
fn case_11_signed_division_rounds_as_named() {
    let expected = [[-3, -3, -3], [-4, -4, -3], [-3, -3, -3], [-1, 1, 0], [1, 1, 0]].concat();
    check_exact!(divisions<B = 4>(x: [-7, 7, -6], [3]; w: [2, -2, 2], [3]) -> i32, [5, 3] => expected);
}

#[test]
fn case_13_division_is_total() {
    let x = [5, i32::MIN, i32::MIN, 0];
    let w = [0, -1, 0, 0];
    let rem_euclid = [5, 0, i32::MIN, 0];
    let expected =
        [[0, i32::MIN, 0, 0], [0, i32::MIN, 0, 0], [0, i32::MIN, 0, 0], [5, 0, i32::MIN, 0], rem_euclid];
    check_exact!(divisions<B = 4>(x: x, [4]; w: w, [4]) -> i32, [5, 4] => expected.concat());
}

#[tile_kernel]
fn halve_u32<const B: usize>(x: &Tensor<u32, n>, y: &mut Tensor<u32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) / 2);
}

/// `x > 100`, `max(x, 100)`, `x / 3`, `x >> 1`.
#[tile_kernel]
fn unsigned_bytes<const B: usize>(x: &Tensor<u8, n>, y: &mut Tensor<u8, 4, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([4, B]);
    let [_, j] = y.index();
    let x = x.load_masked([j]).reshape([1, B]);
    let row = Tile::<i32, 2>::iota([4, B], 0);
    let first = select(row == 0, (x > 100).cast::<u8>(), max(x, 100));
    y.store_masked(select(row < 2, first, select(row == 2, x / 3, x >> 1)));
}

#[tile_kernel]
fn larger_sum_u16<const B: usize>(x: &Tensor<u16, n>, w: &Tensor<u16, n>, y: &mut Tensor<u16, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    let (a, b) = (x.load_masked(y.index()), w.load_masked(y.index()));
    y.store_masked(select(a > b, a + b, b - a));
}

#[test]
fn case_12_unsigned_is_unsigned() {
    check_exact!(halve_u32<B = 4>(x: [u32::MAX], [1]) -> u32, [1] => [0x7fff_ffffu32]);
    check_exact!(unsigned_bytes<B = 4>(x: [200u8, 100], [2]) -> u8, [4, 2] => [1u8, 0, 200, 100, 66, 33, 100, 50]);
    let expected = [61_000u16, 50_000];
    check_exact!(larger_sum_u16<B = 4>(x: [60_000u16, 1000], [2]; w: [1000u16, 51_000], [2]) -> u16, [2] => expected);
}

#[tile_kernel]
fn shift_right_i32<const B: usize>(x: &Tensor<i32, n>, by: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let (x, by) = (x.partition_view([B]), by.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) >> by.load_masked(y.index()));
}

#[tile_kernel]
fn shift_left_i32<const B: usize>(x: &Tensor<i32, n>, by: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let (x, by) = (x.partition_view([B]), by.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) << by.load_masked(y.index()));
}

#[tile_kernel]
fn shift_right_u32<const B: usize>(x: &Tensor<u32, n>, y: &mut Tensor<u32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) >> 1);
}

#[tile_kernel]
fn high_half_u32<const B: usize>(x: &Tensor<u32, n>, w: &Tensor<u32, n>, y: &mut Tensor<u32, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    y.store_masked(mul_hi(x.load_masked(y.index()), w.load_masked(y.index())));
}

#[tile_kernel]
fn high_half_u8<const B: usize>(x: &Tensor<u8, n>, w: &Tensor<u8, n>, y: &mut Tensor<u8, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    y.store_masked(mul_hi(x.load_masked(y.index()), w.load_masked(y.index())));
}

#[test]
fn case_14_high_halves_of_products() {
    check_exact!(high_half_u32<B = 4>(x: [u32::MAX], [1]; w: [u32::MAX], [1]) -> u32, [1] => [0xffff_fffeu32]);
    check_exact!(high_half_u8<B = 4>(x: [255u8], [1]; w: [255u8], [1]) -> u8, [1] => [0xfeu8]);
}

#[test]
fn case_14_shifts_take_their_amount_modulo_the_width() {
    check_exact!(shift_right_i32<B = 4>(x: [-8, -8, 64], [3]; by: [1, 33, -26], [3]) -> i32, [3] => [-4, -4, 1]);
    check_exact!(shift_left_i32<B = 4>(x: [1, 1, 1], [3]; by: [31, 32, 33], [3]) -> i32, [3] => [i32::MIN, 1, 2]);
    check_exact!(shift_right_u32<B = 4>(x: [0xffff_fff8u32], [1]) -> u32, [1] => [0x7fff_fffcu32]);
}

/// Rows: `==`, `!=`, `<`, `<=`, `>`, `>=`.
#[tile_kernel]
fn comparisons<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, y: &mut Tensor<u8, 6, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([6, B]);
    let [_, j] = y.index();
    let (a, b) = (x.load_masked([j]).reshape([1, B]), w.load_masked([j]).reshape([1, B]));
    let row = Tile::<i32, 2>::iota([6, B], 0);
    let low = select(row == 0, a == b, select(row == 1, a != b, a < b));
    let high = select(row == 3, a <= b, select(row == 4, a > b, a >= b));
    y.store_masked(select(row < 3, low, high).cast::<u8>());
}

#[test]
fn case_15_nan_is_not_equal_and_zeros_are() {
    let (x, w) = ([f32::NAN, f32::NAN, -0.0, 1.0], [1.0, f32::NAN, 0.0, 2.0]);
    let expected = [[0u8, 0, 1, 0], [1, 1, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 0]];
    check_exact!(comparisons<B = 4>(x: x, [4]; w: w, [4]) -> u8, [6, 4] => expected.concat());
}

/// Rows: `max` and `min`, which ignore NaN, `maximum` and `minimum`, which propagate it; as bits, so that zeros
/// have their signs.
#[tile_kernel]
fn extremes<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, y: &mut Tensor<u32, 4, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([4, B]);
    let [_, j] = y.index();
    let (a, b) = (x.load_masked([j]).reshape([1, B]), w.load_masked([j]).reshape([1, B]));
    let row = Tile::<i32, 2>::iota([4, B], 0);
    let ignoring = select(row == 0, max(a, b), min(a, b));
    let chosen = select(row < 2, ignoring, select(row == 2, maximum(a, b), minimum(a, b)));
    y.store_masked(select(chosen.is_nan(), 0x7fc0_0000, chosen.bitcast::<u32>()));
}

#[test]
fn case_16_min_and_max_order_zeros_and_say_what_they_do_with_nan() {
    let nan = 0x7fc0_0000u32;
    let (one, plus, minus) = (1f32.to_bits(), 0, 0x8000_0000u32);
    let (x, w) = ([f32::NAN, f32::NAN, -0.0, 0.0], [1.0, f32::NAN, 0.0, -0.0]);
    let expected =
        [[one, nan, plus, plus], [one, nan, minus, minus], [nan, nan, plus, plus], [nan, nan, minus, minus]];
    check_exact!(extremes<B = 4>(x: x, [4]; w: w, [4]) -> u32, [4, 4] => expected.concat());
}

/// Of long rows processors compare by instructions of their own, which know signalling NaN from others.
#[test]
fn case_16_signalling_nan_is_ignored_in_rows_of_any_length() {
    let signalling = f32::from_bits(0x7fa0_0000);
    let inf = f32::INFINITY;
    // The operands; the larger one, the smaller one.
    let cases = [
        ([signalling, 1.0], [1.0, 1.0]),
        ([-2.0, signalling], [-2.0, -2.0]),
        ([-signalling, -0.0], [-0.0, -0.0]),
        ([0.0, -0.0], [0.0, -0.0]),
        ([-0.0, 0.0], [0.0, -0.0]),
        ([1e-40, -1e-40], [1e-40, -1e-40]),
        ([f32::NAN, -inf], [-inf, -inf]),
        ([inf, -3.0], [inf, -3.0]),
    ];
    let n = 5 * cases.len() + 3;
    let [x, w] = [0, 1].map(|side| (0..n).map(|at| cases[at % cases.len()].0[side]).collect::<Vec<f32>>());
    let element = |row: usize, at: usize| match cases[at % cases.len()] {
        ([a, b], _) if row > 1 && (a.is_nan() || b.is_nan()) => 0x7fc0_0000,
        (_, found) => found[row % 2].to_bits(),
    };
    let expected: Vec<u32> = (0..4 * n).map(|place| element(place / n, place % n)).collect();
    check_exact!(extremes<B = 4>(x: &x, [n]; w: &w, [n]) -> u32, [4, n] => expected.clone());
    check_exact!(extremes<B = 32>(x: &x, [n]; w: &w, [n]) -> u32, [4, n] => expected.clone());
}

/// Rows: the larger number of `w` and of what arithmetic with constants makes of `x`, which keeps its magnitude but for NaN;
/// and the smaller one of `w` and a signalling NaN.
#[tile_kernel]
fn extremes_with_constants<const B: usize>(
    x: &Tensor<f32, n>,
    w: &Tensor<f32, n>,
    y: &mut Tensor<u32, 8, n>,
) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([8, B]);
    let [_, j] = y.index();
    let (a, b) = (x.load_masked([j]).reshape([1, B]), w.load_masked([j]).reshape([1, B]));
    let sign = select(b == 0.0, 1.0, Tile::full([1, B], -1.0));
    let signalling = Tile::<u32, 2>::full([1, B], 0x7fa0_0000).bitcast::<f32>();
    let row = Tile::<i32, 2>::iota([8, B], 0);
    let negated = select(row == 0, max(a * -1.0, b), select(row == 1, max(a / -1.0, b), max(-0.0 - a, b)));
    let either = select(row == 3, max(a * sign, b), select(row == 4, max(b, a * -1.0), min(b, a / -1.0)));
    let found = select(
        row < 3,
        negated,
        select(row < 6, either, select(row == 6, min(b, signalling), max(a - -0.0, b))),
    );
    y.store_masked(found.bitcast::<u32>());
}

#[test]
fn case_16_arithmetic_with_constants_leaves_no_signalling_nan() {
    let signalling = f32::from_bits(0x7fa0_0000);
    let n = 37;
    let (x, w) = (vec![signalling; n], (0..n).map(|at| at as f32 - 18.0).collect::<Vec<f32>>());
    let expected: Vec<u32> = (0..8 * n).map(|place| w[place % n].to_bits()).collect();
    check_exact!(extremes_with_constants<B = 4>(x: &x, [n]; w: &w, [n]) -> u32, [8, n] => expected.clone());
    check_exact!(extremes_with_constants<B = 32>(x: &x, [n]; w: &w, [n]) -> u32, [8, n] => expected.clone());
}

/// Words as floats, and floats, as words again.
#[tile_kernel]
fn words_by_way_of_floats<const B: usize>(x: &Tensor<u32, n>, w: &Tensor<f32, n>, y: &mut Tensor<u32, 2, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([2, B]);
    let [_, j] = y.index();
    let (x, w) = (x.load_masked([j]).reshape([1, B]), w.load_masked([j]).reshape([1, B]));
    let row = Tile::<i32, 2>::iota([2, B], 0);
    y.store_masked(select(row == 0, x.bitcast::<f32>(), w).bitcast::<u32>());
}

#[test]
fn case_16_what_is_moved_keeps_the_bits_of_nan() {
    let words = [0x7fc0_0001u32, 0x7fa0_0000, 0xff80_0001, 0xffff_ffff, 0x7f80_0000, 0x3f80_0001];
    let floats = words.map(f32::from_bits);
    let expected = [words, words].concat();
    check_exact!(words_by_way_of_floats<B = 4>(x: words, [6]; w: floats, [6]) -> u32, [2, 6] => expected.clone());
    check_exact!(words_by_way_of_floats<B = 32>(x: words, [6]; w: floats, [6]) -> u32, [2, 6] => expected.clone());
}

/// Rows: f64 to f32 to nearest, up, toward zero, down; as bits.
#[tile_kernel]
fn directions<const B: usize>(x: &Tensor<f64, n>, y: &mut Tensor<u32, 4, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([4, B]);
    let [_, j] = y.index();
    let x = x.load_masked([j]).reshape([1, B]);
    let row = Tile::<i32, 2>::iota([4, B], 0);
    let (nearest, up) = (x.cast_with::<f32>(Rounding::NearestEven), x.cast_with::<f32>(Rounding::Up));
    let (zero, down) = (x.cast_with::<f32>(Rounding::TowardZero), x.cast_with::<f32>(Rounding::Down));
    let rounded = select(row < 2, select(row == 0, nearest, up), select(row == 2, zero, down));
    y.store_masked(rounded.bitcast::<u32>());
}

/// `x·x − w` with one rounding and with two.
#[tile_kernel]
fn fused_and_not<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, y: &mut Tensor<f32, 2, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([2, B]);
    let [_, j] = y.index();
    let (x, w) = (x.load_masked([j]).reshape([1, B]), w.load_masked([j]).reshape([1, B]));
    let row = Tile::<i32, 2>::iota([2, B], 0);
    y.store_masked(select(row == 0, x.mul_add(x, -w), x * x - w));
}

#[tile_kernel]
fn add_zero<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) + 0.0);
}

#[test]
fn case_21_rounding_subnormals_and_fusion() {
    let x = [1.0 + 2f64.powi(-24), -1.0 - 2f64.powi(-24), 1.0 / 3.0, 1e300, -1e300];
    let (one, above) = (0x3f80_0000u32, 0x3f80_0001);
    let (largest, infinity, sign) = (0x7f7f_ffffu32, 0x7f80_0000, 0x8000_0000);
    let expected = [
        [one, one | sign, 0x3eaa_aaab, infinity, infinity | sign],
        [above, one | sign, 0x3eaa_aaab, infinity, largest | sign],
        [one, one | sign, 0x3eaa_aaaa, largest, largest | sign],
        [one, above | sign, 0x3eaa_aaaa, largest, infinity | sign],
    ];
    check_exact!(directions<B = 8>(x: x, [5]) -> u32, [4, 5] => expected.concat());
    let (x, w) = ([1.0 + 2f32.powi(-12)], [1.0 + 2f32.powi(-11)]);
    check_exact!(fused_and_not<B = 4>(x: x, [1]; w: w, [1]) -> f32, [2, 1] => [2f32.powi(-24), 0.0]);
    check_exact!(add_zero<B = 4>(x: [1e-40f32], [1]) -> f32, [1] => [1e-40f32]);
}

#[tile_kernel]
fn f32_to_i32<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()).cast());
}

#[tile_kernel]
fn i32_to_f32<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()).cast());
}

/// Through bf16 and f16, back as f32.
#[tile_kernel]
fn through_halves<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, 2, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([2, B]);
    let [_, j] = y.index();
    let x = x.load_masked([j]).reshape([1, B]);
    let row = Tile::<i32, 2>::iota([2, B], 0);
    y.store_masked(select(row == 0, x.cast::<bf16>().cast::<f32>(), x.cast::<f16>().cast::<f32>()));
}

/// Through the 8-bit formats, back as f32.
#[tile_kernel]
fn through_bytes<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, 2, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([2, B]);
    let [_, j] = y.index();
    let x = x.load_masked([j]).reshape([1, B]);
    let row = Tile::<i32, 2>::iota([2, B], 0);
    y.store_masked(select(row == 0, x.cast::<f8e4m3fn>().cast::<f32>(), x.cast::<f8e5m2>().cast::<f32>()));
}

#[tile_kernel]
fn bytes_to_i32<const B: usize>(x: &Tensor<i8, n>, w: &Tensor<u8, n>, y: &mut Tensor<i32, 2, n>) {
    let (x, w) = (x.partition_view([B]), w.partition_view([B]));
    let mut y = y.partition_view_mut([2, B]);
    let [_, j] = y.index();
    let row = Tile::<i32, 2>::iota([2, B], 0);
    let (x, w) = (x.load_masked([j]).cast::<i32>(), w.load_masked([j]).cast::<i32>());
    y.store_masked(select(row == 0, x.reshape([1, B]), w.reshape([1, B])));
}

#[tile_kernel]
fn i32_to_i8<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i8, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()).cast());
}

#[tile_kernel]
fn bits_of_f32<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<u32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()).bitcast());
}

#[test]
fn case_22_conversions_are_defined_everywhere() {
    let x = [1.9, -1.9, f32::NAN, 1e20, -1e20];
    check_exact!(f32_to_i32<B = 8>(x: x, [5]) -> i32, [5] => [1, -1, 0, i32::MAX, i32::MIN]);
    check_exact!(i32_to_f32<B = 4>(x: [16_777_217], [1]) -> f32, [1] => [16_777_216f32]);
    let step = 2f32.powi(-8);
    let x = [1.0 + step, 1.0 + 3.0 * step, 65519.0, 65520.0];
    let halves = [[1.0, 1.015625, 65536.0, 65536.0], [1.0 + step, 1.0 + 3.0 * step, 65504.0, f32::INFINITY]];
    check_exact!(through_halves<B = 4>(x: x, [4]) -> f32, [2, 4] => halves.concat());
    let x = [1.07, 464.0, 465.0, f32::INFINITY, 2f32.powi(-10), -1e-3];
    let e4m3 = [1.125, 448.0, f32::NAN, f32::NAN, 0.0, -(2f32.powi(-9))];
    let e5m2 = [1.0, 448.0, 448.0, f32::INFINITY, 2f32.powi(-10), -(2f32.powi(-10))];
    check_exact!(through_bytes<B = 8>(x: x, [6]) -> f32, [2, 6] => [e4m3, e5m2].concat());
    check_exact!(bytes_to_i32<B = 4>(x: [-1i8], [1]; w: [255u8], [1]) -> i32, [2, 1] => [-1, 255]);
    check_exact!(i32_to_i8<B = 4>(x: [0x1ff, 128], [2]) -> i8, [2] => [-1i8, -128]);
    check_exact!(bits_of_f32<B = 4>(x: [1.0f32], [1]) -> u32, [1] => [0x3f80_0000u32]);
}

#[tile_kernel]
fn product_f16<const B: usize>(a: &Tensor<f16, m, k>, b: &Tensor<f16, k, n>, c: &mut Tensor<f32, m, n>) {
    let (a, b) = (a.partition_view([B, B]), b.partition_view([B, B]));
    let mut c = c.partition_view_mut([B, B]);
    let [i, j] = c.index();
    let mut sum = Tile::zeros([B, B]);
    for p in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, p]), b.load_masked([p, j]), sum);
    }
    c.store_masked(sum);
}

#[tile_kernel]
fn product_of_signs<const B: usize>(a: &Tensor<i8, m, k>, b: &Tensor<u8, k, n>, c: &mut Tensor<i32, m, n>) {
    let (a, b) = (a.partition_view([B, B]), b.partition_view([B, B]));
    let mut c = c.partition_view_mut([B, B]);
    let [i, j] = c.index();
    c.store_masked(mma(a.load_masked([i, 0]), b.load_masked([0, j]), Tile::zeros([B, B])));
}

#[tile_kernel]
fn product_u8<const B: usize>(a: &Tensor<u8, m, k>, b: &Tensor<u8, k, n>, c: &mut Tensor<i32, m, n>) {
    let (a, b) = (a.partition_view([B, B]), b.partition_view([B, B]));
    let mut c = c.partition_view_mut([B, B]);
    let [i, j] = c.index();
    c.store_masked(mma(a.load_masked([i, 0]), b.load_masked([0, j]), Tile::zeros([B, B])));
}

#[tile_kernel]
fn product_tf32<const B: usize>(a: &Tensor<f32, m, k>, b: &Tensor<f32, k, n>, c: &mut Tensor<f32, m, n>) {
    let (a, b) = (a.partition_view([B, B]), b.partition_view([B, B]));
    let mut c = c.partition_view_mut([B, B]);
    let [i, j] = c.index();
    c.store_masked(mma_tf32(a.load_masked([i, 0]), b.load_masked([0, j]), Tile::zeros([B, B])));
}

#[tile_kernel(where(BK % 32 == 0))]
fn product_scaled<const BK: usize>(
    a: &Tensor<f8e4m3fn, 8, k>,
    scale_a: &Tensor<f32, 8, g>,
    b: &Tensor<f8e5m2, k, 8>,
    scale_b: &Tensor<f32, g, 8>,
    c: &mut Tensor<f32, 8, 8>,
) {
    let (a, scale_a) = (a.partition_view([8, BK]), scale_a.partition_view([8, BK / 32]));
    let (b, scale_b) = (b.partition_view([BK, 8]), scale_b.partition_view([BK / 32, 8]));
    let mut c = c.partition_view_mut([8, 8]);
    let mut sum = Tile::zeros([8, 8]);
    for p in 0..a.tiles(1) {
        let (a, scale_a) = (a.load_masked([0, p]), scale_a.load_masked([0, p]));
        let (b, scale_b) = (b.load_masked([p, 0]), scale_b.load_masked([p, 0]));
        sum = mma_scaled(a, scale_a, b, scale_b, sum);
    }
    c.store_masked(sum);
}

#[test]
fn case_23_scaled_products() {
    let (k, g) = (192, 6);
    let (one_a, one_b) = (f8e4m3fn::from_f32(1.0), f8e5m2::from_f32(1.0));
    check_exact!(
        product_scaled<BK = 64>(
            a: vec![one_a; 8 * k], [8, k];
            scale_a: vec![2f32; 8 * g], [8, g];
            b: vec![one_b; k * 8], [k, 8];
            scale_b: vec![0.5f32; g * 8], [g, 8]
        ) -> f32, [8, 8] => vec![k as f32; 64]
    );
}

#[test]
fn case_23_products() {
    let one = f16::from_f32(1.0);
    check_exact!(product_f16<B = 16>(a: [one; 128], [16, 8]; b: [one; 128], [8, 16]) -> f32, [16, 16] => [8f32; 256]);
    let (m, n, k) = (100, 70, 48);
    check_exact!(
        product_f16<B = 32>(a: vec![one; m * k], [m, k]; b: vec![one; k * n], [k, n]) -> f32, [m, n] => vec![48f32; m * n]
    );
    check_exact!(product_of_signs<B = 16>(a: [-1i8; 16], [1, 16]; b: [255u8; 16], [16, 1]) -> i32, [1, 1] => [-4080]);
    check_exact!(product_u8<B = 16>(a: [255u8; 16], [1, 16]; b: [255u8; 16], [16, 1]) -> i32, [1, 1] => [1_040_400]);
    let third = [1f32 / 3.0];
    check_exact!(product_tf32<B = 1>(a: third, [1, 1]; b: [1f32], [1, 1]) -> f32, [1, 1] => [1365.0f32 / 4096.0]);
}

macro_rules! truncations {
    ($($name:ident: $from:ident => $to:ident),* $(,)?) => {
        $(
            #[tile_kernel]
            fn $name<const B: usize>(x: &Tensor<$from, n>, y: &mut Tensor<$to, n>) {
                let x = x.partition_view([B]);
                let mut y = y.partition_view_mut([B]);
                y.store_masked(x.load_masked(y.index()).cast());
            }
        )*

        #[test]
        fn floats_are_truncated_and_saturate() {
            $({
                let powers = [0, 7, 8, 15, 16, 23, 31, 32, 52, 63, 64, 100].map(|power| (2.0 as $from).powi(power));
                let near = powers.iter().flat_map(|&x| [x, x.next_down(), x.next_up(), x - 1.0, x + 0.75]);
                let odd = [0.3, 0.99, 1.5, 2.5, 100.7, 1e10, 3.4e38, $from::MIN_POSITIVE, $from::INFINITY, $from::NAN];
                let values: Vec<$from> = near.chain(odd).flat_map(|x| [x, -x]).collect();
                let (n, expected) = (values.len(), values.iter().map(|&x| x as $to as f64));
                check_exact!($name<B = 64>(x: values, [n]) -> $to, [n] => expected.collect::<Vec<f64>>());
            })*
        }
    };
}

truncations! {
    f32_to_i8: f32 => i8, f32_to_i16: f32 => i16, f32_to_i64: f32 => i64,
    f32_to_u8: f32 => u8, f32_to_u16: f32 => u16, f32_to_u32: f32 => u32, f32_to_u64: f32 => u64,
    f64_to_i8: f64 => i8, f64_to_i16: f64 => i16, f64_to_i32: f64 => i32, f64_to_i64: f64 => i64,
    f64_to_u8: f64 => u8, f64_to_u16: f64 => u16, f64_to_u32: f64 => u32, f64_to_u64: f64 => u64,
}
