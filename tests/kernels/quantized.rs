//! Products of numbers in few bits: 8-bit floats and 4-bit ones with a scale for each block (also those of the
//! microscaling formats), and weights of −1, 0 and 1.

use super::whole::check_kernel;
use super::{check_exact, numbers};
use tile::prelude::*;

/// 8-bit floats with scales for 1×S numbers of the left and S×S of the right factor, which is transposed.
#[tile_kernel(where(S % BN == 0))]
fn blockwise_floats<const BM: usize, const BN: usize, const S: usize>(
    a: &Tensor<f8e4m3fn, m, k>,
    a_scales: &Tensor<f32, m, { k.div_ceil(S) }>,
    b: &Tensor<f8e4m3fn, n, k>,
    b_scales: &Tensor<f32, { n.div_ceil(S) }, { k.div_ceil(S) }>,
    c: &mut Tensor<bf16, m, n>,
) {
    let a = a.partition_view([BM, S]);
    let b = b.partition_view([BN, S]);
    let a_scales = a_scales.partition_view([BM, 1]);
    let b_scales = b_scales.partition_view([1, 1]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let part = mma(a.load_masked([i, p]), b.load_masked([j, p]).t(), Tile::zeros([BM, BN]));
        acc += part * a_scales.load_masked([i, p]) * b_scales.load_masked([j * BN / S, p]);
    }
    c.store_masked(acc.cast::<bf16>());
}

#[test]
fn floats_of_eight_bits_have_a_scale_for_each_block() {
    let (m, n, k, s) = (20, 70, 100, 32);
    let a = numbers::<f8e4m3fn>(m * k, 1);
    let b = numbers::<f8e4m3fn>(n * k, 2);
    let blocks = k.div_ceil(s);
    let a_scales = numbers::<f32>(m * blocks, 3);
    let b_scales = numbers::<f32>(n.div_ceil(s) * blocks, 4);
    let element = |at: usize| {
        let (i, j) = (at / n, at % n);
        let term = |p: usize| {
            let scale = a_scales[i * blocks + p / s] * b_scales[j / s * blocks + p / s];
            f64::from(a[i * k + p].to_f32() * b[j * k + p].to_f32() * scale)
        };
        (0..k).map(term).sum::<f64>()
    };
    let c: Vec<f64> = (0..m * n).map(element).collect();
    check_kernel!(blockwise_floats<BM = 16, BN = 16, S = 32>(
        input a: (a, [m, k]), input a_scales: (a_scales, [m, blocks]), input b: (b, [n, k]),
        input b_scales: (b_scales, [n.div_ceil(s), blocks]),
        output c: (vec![bf16::ZERO; m * n], [m, n] => c, 8e-3),
    ));
}

/// The numbers of 4-bit floats with two bits of exponent: ±0, 0.5, 1, 1.5, 2, 3, 4, 6.
#[tile_fn]
fn from_e2m1(code: Tile<i32, 2>) -> Tile<f32, 2> {
    let exponent = (code & 7) >> 1;
    let half = (code & 1).cast::<f32>() * 0.5;
    let magnitude = select(exponent == 0, half, exp2((exponent - 1).cast::<f32>()) * (half + 1.0));
    select(code >= 8, -magnitude, magnitude)
}

/// MXFP4: two codes to a byte, the lower first, and for each 32 a power of two. S of these blocks are a turn.
#[tile_kernel]
fn four_bit_floats<const BM: usize, const BN: usize, const S: usize>(
    x: &Tensor<bf16, m, { 32 * s }>,
    weights: &Tensor<u8, n, { 16 * s }>,
    exponents: &Tensor<u8, n, s>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([BM, 32 * S]);
    let weights = weights.partition_view([BN, 16 * S]);
    let exponents = exponents.partition_view([BN, S]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..x.tiles(1) {
        let bytes = weights.load_masked([j, p]).cast::<i32>();
        let pairs = stack([from_e2m1(bytes & 15), from_e2m1(bytes >> 4)], 2);
        // The bits of an f32 with this exponent.
        let scale = (exponents.load_masked([j, p]).cast::<u32>() << 23).bitcast::<f32>();
        let weights = (pairs.reshape([BN, S, 32]) * scale.unsqueeze(2)).reshape([BN, 32 * S]);
        acc = mma(x.load_masked([i, p]), weights.cast::<bf16>().t(), acc);
    }
    y.store_masked(acc);
}

/// What four bits mean as a float (OCP MX specification 1.0, table 6), `f4e2m1`.
fn of_four_bits(code: u8) -> f64 {
    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
    if code < 8 { magnitude } else { -magnitude }
}

#[test]
fn floats_of_four_bits_share_an_exponent() {
    let (m, n, s) = (9, 40, 3);
    let k = 32 * s;
    let x = numbers::<bf16>(m * k, 1);
    let weights: Vec<u8> = (0..n * k / 2).map(|i| (i * 151 % 256) as u8).collect();
    let exponents: Vec<u8> = (0..n * s).map(|i| 124 + (i * 5 % 7) as u8).collect();
    let weight = |at: usize| {
        let code = weights[at / 2] >> (4 * (at % 2)) & 15;
        of_four_bits(code) * 2f64.powi(i32::from(exponents[at / 32]) - 127)
    };
    let element =
        |at: usize| (0..k).map(|p| x[at / n * k + p].to_f64() * weight(at % n * k + p)).sum::<f64>();
    let y: Vec<f64> = (0..m * n).map(element).collect();
    check_kernel!(four_bit_floats<BM = 16, BN = 32, S = 2>(
        input x: (x, [m, k]), input weights: (weights, [n, k / 2]), input exponents: (exponents, [n, s]),
        output y: (vec![0f32; m * n], [m, n] => y, 1e-5),
    ));
}

/// MXFP4 of floats, as the OCP's specification has it: the power of two of each 32 takes the largest of them to the exponent
/// of 4, and each becomes the nearest number of four bits.
#[tile_kernel]
fn to_four_bits<const BM: usize, const S: usize>(
    x: &Tensor<f32, m, { 32 * s }>,
    bytes: &mut Tensor<u8, m, { 16 * s }>,
    scales: &mut Tensor<f8e8m0fnu, m, s>,
) {
    let mut bytes = bytes.partition_view_mut([BM, 16 * S]);
    let mut scales = scales.partition_view_mut([BM, S]);
    let x = x.partition_view([BM, 32 * S]).load_masked(bytes.index()).reshape([BM, S, 32]);
    // The exponent's bits alone are the largest power of two that isn't larger.
    let power = (abs(x).max(2).bitcast::<u32>() & 0x7f80_0000).bitcast::<f32>();
    let scale = (power * 0.25).cast::<f8e8m0fnu>();
    bytes.store_masked((x / scale.cast::<f32>()).reshape([BM, 32 * S]).pack_f4e2m1());
    scales.store_masked(scale.squeeze(2));
}

/// The numbers of four bits and what lies halfway between them, and next to all of these, of both signs.
fn around_four_bits() -> Vec<f32> {
    let numbers = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0];
    numbers.iter().flat_map(|&x: &f32| [x, x.next_up(), x.next_down()]).flat_map(|x| [x, -x]).collect()
}

/// The code of the number of four bits that is nearest, by trying all; of two the one with an even mantissa.
fn nearest_code(x: f64) -> u8 {
    let distance = |code: &u8| (of_four_bits(*code) - x.abs()).abs();
    let order = |a: &u8, b: &u8| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2)));
    (0..8).min_by(order).expect("there are eight") + if x.is_sign_negative() { 8 } else { 0 }
}

#[test]
fn four_bits_have_the_scale_of_the_largest() {
    let (m, s) = (5, 6);
    let around = around_four_bits();
    // Blocks at every power of two, one of zeros, and one whose largest number isn't among the ties.
    let block = |at: usize| -> Vec<f32> {
        let power = 2f32.powi([0, -3, 7, 40, -60, 1][at % 6]);
        let mut block: Vec<f32> = (0..32).map(|i| around[(at * 31 + i) % around.len()] * power).collect();
        // So that the scale is this power.
        block[at % 32] = [4.0, -5.9, 7.9][at % 3] * power;
        if at == 13 { vec![0.0; 32] } else { block }
    };
    let x: Vec<f32> = (0..m * s).flat_map(block).collect();
    let (mut bytes, mut scales) = (Vec::new(), Vec::new());
    for block in x.chunks(32) {
        let most = block.iter().fold(0f32, |most, x| most.max(x.abs()));
        let scale = (-127..=127).map(|e| 2f64.powi(e)).rfind(|power| 4.0 * power <= f64::from(most));
        let scale = scale.unwrap_or(2f64.powi(-127));
        let codes: Vec<u8> = block.iter().map(|&x| nearest_code(f64::from(x) / scale)).collect();
        bytes.extend(codes.chunks(2).map(|pair| pair[0] + 16 * pair[1]));
        scales.push(scale);
    }
    check_kernel!(to_four_bits<BM = 4, S = 4>(
        input x: (x, [m, 32 * s]),
        output bytes: (vec![0u8; bytes.len()], [m, 16 * s] => bytes, 0.0),
        output scales: (vec![f8e8m0fnu::from_bits(0); scales.len()], [m, s] => scales, 0.0),
    ));
}

#[tile_kernel(where(B % 2 == 0))]
fn packed<T: Float, const B: usize>(x: &Tensor<T, { 2 * n }>, y: &mut Tensor<u8, n>) {
    let mut y = y.partition_view_mut([B / 2]);
    y.store_masked(x.partition_view([B]).load_masked(y.index()).pack_f4e2m1());
}

fn check_packed<T: Float>() -> tile::Result<()> {
    let ends =
        [f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -1e-30, f32::NAN, 6.5];
    let x: Vec<T> = around_four_bits().into_iter().chain(ends).map(|x| T::from_float(f64::from(x))).collect();
    let code = |x: &T| match x.to_float() {
        x if x.is_nan() => 7,
        // All are as far from infinity.
        x => nearest_code(x.clamp(-100.0, 100.0)),
    };
    let codes: Vec<u8> = x.iter().map(code).collect();
    let bytes: Vec<u8> = codes.chunks(2).map(|pair| pair[0] + 16 * pair[1]).collect();
    for (device, label) in super::devices() {
        let from = Tensor::from_slice(&device, &x, [x.len()])?;
        let mut y = Tensor::zeros(&device, [bytes.len()])?;
        packed::<T, 64>(&from, &mut y).launch()?;
        assert_eq!(y.to_vec()?, bytes, "{} on {label}", T::DTYPE);
    }
    Ok(())
}

#[test]
fn every_float_is_packed_in_four_bits() {
    check_packed::<f8e4m3fn>().unwrap();
    check_packed::<f8e5m2>().unwrap();
    check_packed::<f16>().unwrap();
    check_packed::<bf16>().unwrap();
    check_packed::<f32>().unwrap();
    check_packed::<f64>().unwrap();
}

/// MXFP8: 8-bit floats in both factors, and for each 32 along K a power of two.
#[tile_kernel(where(BK % 32 == 0))]
fn microscaled<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f8e4m3fn, m, { 32 * g }>,
    a_scales: &Tensor<f8e8m0fnu, m, g>,
    b: &Tensor<f8e5m2, n, { 32 * g }>,
    b_scales: &Tensor<f8e8m0fnu, n, g>,
    c: &mut Tensor<f32, m, n>,
) {
    let (a, a_scales) = (a.partition_view([BM, BK]), a_scales.partition_view([BM, BK / 32]));
    let (b, b_scales) = (b.partition_view([BN, BK]), b_scales.partition_view([BN, BK / 32]));
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let (left, left_scales) = (a.load_masked([i, p]), a_scales.load_masked([i, p]));
        let (right, right_scales) = (b.load_masked([j, p]), b_scales.load_masked([j, p]));
        acc = mma_scaled(left, left_scales, right.t(), right_scales.t(), acc);
    }
    c.store_masked(acc);
}

#[test]
fn blocks_of_floats_are_scaled_by_powers_of_two() {
    let (m, n, g) = (20, 70, 3);
    let k = 32 * g;
    let (a, b) = (numbers::<f8e4m3fn>(m * k, 1), numbers::<f8e5m2>(n * k, 2));
    let scales = |count: usize, step: usize| -> Vec<f8e8m0fnu> {
        (0..count).map(|i| f8e8m0fnu::from_bits(123 + (i * step % 9) as u8)).collect()
    };
    let (a_scales, b_scales) = (scales(m * g, 5), scales(n * g, 7));
    let element = |at: usize| {
        let (i, j) = (at / n, at % n);
        let term = |p: usize| {
            let scale = a_scales[i * g + p / 32].to_f64() * b_scales[j * g + p / 32].to_f64();
            a[i * k + p].to_f64() * b[j * k + p].to_f64() * scale
        };
        (0..k).map(term).sum::<f64>()
    };
    let c: Vec<f64> = (0..m * n).map(element).collect();
    check_kernel!(microscaled<BM = 16, BN = 32, BK = 64>(
        input a: (a, [m, k]), input a_scales: (a_scales, [m, g]), input b: (b, [n, k]),
        input b_scales: (b_scales, [n, g]),
        output c: (vec![0f32; m * n], [m, n] => c, 1e-5),
    ));
}

/// Two matrices in a tile, as of two heads, each with scales of its own.
#[tile_kernel]
fn microscaled_heads<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f8e4m3fn, h, m, { 32 * BK }>,
    a_scales: &Tensor<f8e8m0fnu, h, m, BK>,
    b: &Tensor<f8e5m2, h, { 32 * BK }, n>,
    b_scales: &Tensor<f32, h, BK, n>,
    c: &mut Tensor<f32, h, m, n>,
) {
    let (a, a_scales) = (a.partition_view([2, BM, 32 * BK]), a_scales.partition_view([2, BM, BK]));
    let (b, b_scales) = (b.partition_view([2, 32 * BK, BN]), b_scales.partition_view([2, BK, BN]));
    let mut c = c.partition_view_mut([2, BM, BN]);
    let [h, i, j] = c.index();
    let (left, left_scales) = (a.load_masked([h, i, 0]), a_scales.load_masked([h, i, 0]));
    let (right, right_scales) = (b.load_masked([h, 0, j]), b_scales.load_masked([h, 0, j]));
    c.store_masked(mma_scaled(left, left_scales, right, right_scales, Tile::ones([2, BM, BN])));
}

#[test]
fn leading_axes_count_scaled_matrices() {
    let (h, m, n, g) = (3, 20, 36, 2);
    let k = 32 * g;
    let (a, b) = (numbers::<f8e4m3fn>(h * m * k, 1), numbers::<f8e5m2>(h * k * n, 2));
    let a_scales: Vec<_> = (0..h * m * g).map(|i| f8e8m0fnu::from_bits(123 + (i * 5 % 9) as u8)).collect();
    let b_scales: Vec<f32> = (0..h * g * n).map(|i| (i * 7 % 11) as f32 * 0.25).collect();
    let element = |at: usize| {
        let (head, i, j) = (at / n / m, at / n % m, at % n);
        let term = |p: usize| {
            let left = a[(head * m + i) * k + p].to_f64() * a_scales[(head * m + i) * g + p / 32].to_f64();
            let right = b[(head * k + p) * n + j].to_f64() * f64::from(b_scales[(head * g + p / 32) * n + j]);
            left * right
        };
        1.0 + (0..k).map(term).sum::<f64>()
    };
    let c: Vec<f64> = (0..h * m * n).map(element).collect();
    check_kernel!(microscaled_heads<BM = 16, BN = 32, BK = 2>(
        input a: (a, [h, m, k]), input a_scales: (a_scales, [h, m, g]), input b: (b, [h, k, n]),
        input b_scales: (b_scales, [h, g, n]),
        output c: (vec![0f32; h * m * n], [h, m, n] => c, 1e-5),
    ));
}

/// NVFP4: 4-bit floats in both factors, an 8-bit float for each 16 along K, and one scale for all of a factor.
#[tile_kernel(where(BK % 16 == 0))]
fn four_bits_in_both<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<u8, m, { 8 * g }>,
    a_scales: &Tensor<f8e4m3fn, m, g>,
    b: &Tensor<u8, n, { 8 * g }>,
    b_scales: &Tensor<f8e4m3fn, n, g>,
    scale: f32,
    c: &mut Tensor<f32, m, n>,
) {
    let (a, a_scales) = (a.partition_view([BM, BK / 2]), a_scales.partition_view([BM, BK / 16]));
    let (b, b_scales) = (b.partition_view([BN, BK / 2]), b_scales.partition_view([BN, BK / 16]));
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let (left, left_scales) = (a.load_masked([i, p]).unpack_f4e2m1(), a_scales.load_masked([i, p]));
        let (right, right_scales) = (b.load_masked([j, p]).unpack_f4e2m1(), b_scales.load_masked([j, p]));
        acc = mma_scaled(left, left_scales, right.t(), right_scales.t(), acc);
    }
    c.store_masked(acc * scale);
}

#[test]
fn factors_of_four_bits_have_scales_of_eight() {
    let (m, n, g) = (20, 70, 5);
    let k = 16 * g;
    let codes =
        |count: usize, step: usize| -> Vec<u8> { (0..count).map(|i| (i * step % 256) as u8).collect() };
    let (a, b) = (codes(m * k / 2, 151), codes(n * k / 2, 89));
    let (a_scales, b_scales) = (numbers::<f8e4m3fn>(m * g, 3), numbers::<f8e4m3fn>(n * g, 4));
    let number = |bytes: &[u8], at: usize| of_four_bits(bytes[at / 2] >> (4 * (at % 2)) & 15);
    let element = |at: usize| {
        let (i, j) = (at / n, at % n);
        let term = |p: usize| {
            let scale = a_scales[i * g + p / 16].to_f64() * b_scales[j * g + p / 16].to_f64();
            number(&a, i * k + p) * number(&b, j * k + p) * scale
        };
        0.25 * (0..k).map(term).sum::<f64>()
    };
    let c: Vec<f64> = (0..m * n).map(element).collect();
    check_kernel!(four_bits_in_both<BM = 16, BN = 32, BK = 64>(
        input a: (a, [m, k / 2]), input a_scales: (a_scales, [m, g]), input b: (b, [n, k / 2]),
        input b_scales: (b_scales, [n, g]), number scale: (0.25f32),
        output c: (vec![0f32; m * n], [m, n] => c, 1e-5),
    ));
}

/// Weights of −1, 0 and 1, four to a byte, times rows that become i8 on the way, each by its own step.
#[tile_kernel]
fn ternary<const BM: usize, const BN: usize, const W: usize>(
    x: &Tensor<f32, m, { 4 * w }>,
    weights: &Tensor<u8, n, w>,
    scale: f32,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([BM, 4 * W]);
    let weights = weights.partition_view([BN, W]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let mut most = Tile::full([BM, 1], 1e-5);
    for p in 0..x.tiles(1) {
        most = max(most, x.load_masked([i, p]).abs().max(1));
    }
    let step = most / 127.0;
    let mut acc = Tile::<i32, 2>::zeros([BM, BN]);
    for p in 0..x.tiles(1) {
        let rounded = round_ties_even(x.load_masked([i, p]) / step).cast::<i8>();
        let codes = weights.load_masked([j, p]).unsqueeze(2) >> (Tile::<u8, 3>::iota([1, 1, 4], 2) * 2);
        let signs = ((codes & 3).cast::<i8>() - 1).reshape([BN, 4 * W]);
        acc = mma(rounded, signs.t(), acc);
    }
    y.store_masked(acc.cast::<f32>() * step * scale);
}

#[test]
fn weights_of_three_values_are_added_and_subtracted() {
    let (m, n, w) = (20, 30, 12);
    let k = 4 * w;
    let x = numbers::<f32>(m * k, 1);
    // Two bits each, 0 to 2.
    let weights: Vec<u8> =
        (0..n * w).map(|i| (i * 37 % 256) as u8 & 0x55 | (i % 2 * 0x20) as u8 & 0xaa).collect();
    let weights: Vec<u8> = weights.iter().map(|&byte| byte & !(byte >> 1 & 0x55)).collect();
    let mut y = vec![];
    for at in 0..m * n {
        let row = &x[at / n * k..][..k];
        let step = row.iter().fold(1e-5f32, |most, x| most.max(x.abs())) / 127.0;
        let sign = |p: usize| i32::from(weights[at % n * w + p / 4] >> (2 * (p % 4)) & 3) - 1;
        let sum: i32 = (0..k).map(|p| (row[p] / step).round_ties_even() as i32 * sign(p)).sum();
        y.push(sum as f32 * step * 0.75);
    }
    check_kernel!(ternary<BM = 16, BN = 16, W = 8>(
        input x: (x, [m, k]), input weights: (weights, [n, w]), number scale: (0.75f32),
        output y: (vec![0f32; m * n], [m, n] => y, 1e-6),
    ));
}

/// Codes of four bits in tiles as wide as those of another format, of any even width.
#[tile_kernel(where(K % 2 == 0))]
fn unpacked<const M: usize, const K: usize>(w: &Tensor<u8, m, h>, y: &mut Tensor<f32, m, { 2 * h }>) {
    let w = w.partition_view([M, K / 2]);
    let mut y = y.partition_view_mut([M, K]);
    y.store_masked(w.load_masked(y.index()).unpack_f4e2m1().cast::<f32>());
}

#[test]
fn codes_are_as_wide_as_what_they_mean() {
    let w: Vec<u8> = (0..3 * 5).map(|i| (i * 37 % 256) as u8).collect();
    let number = |code: u8| of_four_bits(code) as f32;
    let y: Vec<f32> = w.iter().flat_map(|byte| [number(byte & 15), number(byte >> 4)]).collect();
    check_exact!(unpacked<M = 2, K = 4>(w: w, [3, 5]) -> f32, [3, 10] => y);
}

/// One scale for all that a tile has of a row.
#[tile_kernel]
fn scaled_rows<const BM: usize, const BN: usize>(
    a: &Tensor<f8e4m3fn, m, { 512 * g }>,
    a_scales: &Tensor<f32, m, g>,
    b: &Tensor<f8e4m3fn, { 512 * g }, n>,
    b_scales: &Tensor<f32, g, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let (a, a_scales) = (a.partition_view([BM, 512]), a_scales.partition_view([BM, 1]));
    let (b, b_scales) = (b.partition_view([512, BN]), b_scales.partition_view([1, BN]));
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let (left, left_scales) = (a.load_masked([i, p]), a_scales.load_masked([i, p]));
        acc = mma_scaled(left, left_scales, b.load_masked([p, j]), b_scales.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

#[test]
fn scales_of_whole_rows() {
    let (m, n, g) = (16, 8, 2);
    let k = 512 * g;
    let (a, b) = (numbers::<f8e4m3fn>(m * k, 1), numbers::<f8e4m3fn>(k * n, 2));
    let (a_scales, b_scales) = (numbers::<f32>(m * g, 3), numbers::<f32>(g * n, 4));
    let element = |at: usize| {
        let (i, j) = (at / n, at % n);
        let scale = |p: usize| f64::from(a_scales[i * g + p / 512]) * f64::from(b_scales[p / 512 * n + j]);
        (0..k).map(|p| a[i * k + p].to_f64() * b[p * n + j].to_f64() * scale(p)).sum::<f64>()
    };
    let c: Vec<f64> = (0..m * n).map(element).collect();
    check_kernel!(scaled_rows<BM = 16, BN = 8>(
        input a: (a, [m, k]), input a_scales: (a_scales, [m, g]), input b: (b, [k, n]),
        input b_scales: (b_scales, [g, n]),
        output c: (vec![0f32; m * n], [m, n] => c, 1e-4),
    ));
}

/// A factor by its code, and codes of what there is.
#[tile_kernel]
fn by_codes(x: &Tensor<f8e4m3fn, n>, y: &mut Tensor<f32, n>, codes: &mut Tensor<u8, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut codes = codes.partition_view_mut([4]);
    let x = x.partition_view([4]).load_masked(y.index());
    let two = f8e4m3fn::from_bits(0x40);
    let scale = f8e8m0fnu::from_bits(128);
    y.store_masked(x.cast::<f32>() * (two as f32 + scale as f32));
    codes.store_masked(Tile::full([4], x.extract([3], [1]).item().to_bits()));
}

#[test]
fn numbers_of_8_bits_are_made_of_bits() {
    let x = [0.5, 1.0, -2.0, 1.5].map(f8e4m3fn::from_f32);
    check_kernel!(by_codes<>(
        input x: (x.to_vec(), [4]),
        output y: (vec![0f32; 4], [4] => [2.0, 4.0, -8.0, 6.0], 0.0),
        output codes: (vec![0u8; 4], [4] => [f64::from(0x3c); 4], 0.0),
    ));
}
