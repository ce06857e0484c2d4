//! Transforms of rows in their own number of steps: Fourier's by fours, Hadamard's by twos, and a digest.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Fourier transforms of 64 numbers, real and imaginary parts apart, in three steps of butterflies of four.
#[tile_kernel]
fn fourier_by_fours(
    re: &Tensor<f32, b, 64>,
    im: &Tensor<f32, b, 64>,
    out_re: &mut Tensor<f32, b, 64>,
    out_im: &mut Tensor<f32, b, 64>,
) {
    let mut out_re = out_re.partition_view_mut([1, 64]);
    let mut out_im = out_im.partition_view_mut([1, 64]);
    let mut x = re.partition_view([1, 64]).load(out_re.index()).reshape([64]);
    let mut y = im.partition_view([1, 64]).load(out_re.index()).reshape([64]);
    let turned = |x: Tile<f32, 3>, y: Tile<f32, 3>, angle: Tile<f32, 3>| {
        let (c, s) = (cos(angle), sin(angle));
        (x * c - y * s, x * s + y * c)
    };
    for step in [0, 1, 2] {
        let [a, b, c, d] = x.reshape([4, 16 >> (2 * step), 1 << (2 * step)]).split_even::<4>(0);
        let [e, f, g, h] = y.reshape([4, 16 >> (2 * step), 1 << (2 * step)]).split_even::<4>(0);
        let position = Tile::<f32, 3>::iota([1, 16 >> (2 * step), 1], 1);
        let angle = position * (-2.0 * std::f32::consts::PI / (64 >> (2 * step)) as f32);
        let (x1, y1) = turned(a - c + f - h, e - g - b + d, angle);
        let (x2, y2) = turned(a - b + c - d, e - f + g - h, angle * 2.0);
        let (x3, y3) = turned(a - c - f + h, e - g + b - d, angle * 3.0);
        x = cat([a + b + c + d, x1, x2, x3], 0).permute([1, 0, 2]).reshape([64]);
        y = cat([e + f + g + h, y1, y2, y3], 0).permute([1, 0, 2]).reshape([64]);
    }
    out_re.store(x.reshape([1, 64]));
    out_im.store(y.reshape([1, 64]));
}

#[test]
fn butterflies_are_a_fourier_transform() {
    let (b, n) = (3, 64);
    let (re, im) = (numbers::<f32>(b * n, 1), numbers::<f32>(b * n, 2));
    let (mut out_re, mut out_im) = (vec![0.0; b * n], vec![0.0; b * n]);
    for at in 0..b * n {
        for t in 0..n {
            let angle = -2.0 * std::f64::consts::PI * (at % n * t) as f64 / n as f64;
            let (x, y) = (f64::from(re[at / n * n + t]), f64::from(im[at / n * n + t]));
            out_re[at] += x * angle.cos() - y * angle.sin();
            out_im[at] += x * angle.sin() + y * angle.cos();
        }
    }
    check_kernel!(fourier_by_fours<>(
        input re: (re, [b, n]), input im: (im, [b, n]),
        output out_re: (vec![0f32; b * n], [b, n] => out_re, 1e-5),
        output out_im: (vec![0f32; b * n], [b, n] => out_im, 1e-5),
    ));
}

/// Hadamard transforms of 32 numbers, which spread outliers before numbers become small formats.
#[tile_kernel]
fn hadamard<const R: usize>(x: &Tensor<bf16, m, 32>, y: &mut Tensor<bf16, m, 32>) {
    let mut y = y.partition_view_mut([R, 32]);
    let mut t = x.partition_view([R, 32]).load_masked(y.index()).cast::<f32>();
    for step in [0, 1, 2, 3, 4] {
        let [a, b] = t.reshape([R, 16 >> step, 2, 1 << step]).split_even::<2>(2);
        t = cat([a + b, a - b], 2).reshape([R, 32]);
    }
    y.store_masked((t * rsqrt(32.0f32)).cast::<bf16>());
}

#[test]
fn rows_are_spread_by_signs() {
    let m = 7;
    let x = numbers::<bf16>(m * 32, 1);
    let element = |at: usize| {
        let sign = |j: usize| if ((at % 32) & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..32).map(|j| sign(j) * x[at / 32 * 32 + j].to_f64()).sum::<f64>() / 32f64.sqrt()
    };
    let y: Vec<f64> = (0..m * 32).map(element).collect();
    check_kernel!(hadamard<R = 4>(
        input x: (x, [m, 32]), output y: (vec![bf16::ZERO; m * 32], [m, 32] => y, 8e-3),
    ));
}

#[tile_fn]
fn rotated(x: Tile<u32, 1>, by: u32) -> Tile<u32, 1> {
    (x >> by) | (x << (32 - by))
}

/// SHA-256 of messages of one block, B of them side by side.
#[tile_kernel]
fn digest<const B: usize>(
    messages: &Tensor<u32, n, 16>,
    constants: &Tensor<u32, 64>,
    digests: &mut Tensor<u32, n, 8>,
) {
    let constants = constants.partition_view([1]);
    let mut digests = digests.partition_view_mut([B, 8]);
    let mut window = messages.partition_view([B, 16]).load_masked(digests.index());
    let start: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let mut state = [Tile::<u32, 1>::zeros([B]); 8];
    for p in 0..8 {
        state[p] = Tile::full([B], start[p]);
    }
    for t in 0..64 {
        let [a, b, c, d, e, f, g, h] = state;
        let word = window.take(0, 1).squeeze(1);
        let chosen = (e & f) ^ (!e & g);
        let most = (a & b) ^ (a & c) ^ (b & c);
        let first =
            h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + chosen + constants.load([t]) + word;
        let second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + most;
        state = [first + second, a, b, c, d + first, e, f, g];
        let (near, far) = (window.take(1, 1).squeeze(1), window.take(14, 1).squeeze(1));
        let near = rotated(near, 7) ^ rotated(near, 18) ^ (near >> 3);
        let far = rotated(far, 17) ^ rotated(far, 19) ^ (far >> 10);
        let next = word + near + window.take(9, 1).squeeze(1) + far;
        window = window.shift(1, -1, 0).insert([0, 15], next.unsqueeze(1));
    }
    let mut result = Tile::zeros([B, 8]);
    for p in 0..8 {
        result = result.insert([0, p], (state[p] + start[p]).unsqueeze(1));
    }
    digests.store_masked(result);
}

#[test]
fn digests_are_those_of_the_standard() {
    let is_prime = |n: &u32| (2..*n).all(|divisor| !n.is_multiple_of(divisor));
    // The first bits of the fractions of the cube roots of the first primes.
    let fraction = |prime: u32| (f64::from(prime).cbrt().fract() * 4_294_967_296.0) as u32;
    let constants: Vec<u32> = (2..).filter(is_prime).map(fraction).take(64).collect();
    // "abc", nothing and "a", each with a bit behind it and its length at the end.
    let mut messages = [0u32; 48];
    (messages[0], messages[15]) = (0x6162_6380, 24);
    messages[16] = 0x8000_0000;
    (messages[32], messages[47]) = (0x6180_0000, 8);
    let digests = [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
    ];
    let words = digests.iter().flat_map(|digest| (0..8).map(move |i| &digest[8 * i..8 * i + 8]));
    let words: Vec<u32> = words.map(|word| u32::from_str_radix(word, 16).expect("it is a number")).collect();
    check_kernel!(digest<B = 4>(
        input messages: (messages, [3, 16]), input constants: (constants, [64]),
        output digests: (vec![0u32; 24], [3, 8] => words, 0.0),
    ));
}
