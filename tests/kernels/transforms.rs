//! Transforms of rows in their own number of steps: Fourier's by fours, Hadamard's by twos, a digest and a cipher.

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

/// SHA-256 of messages of one block as they lie in memory, B of them side by side: its words have their upper byte first.
#[tile_kernel]
fn digest<const B: usize>(
    messages: &Tensor<u32, n, 16>,
    constants: &Tensor<u32, 64>,
    digests: &mut Tensor<u32, n, 8>,
) {
    let constants = constants.partition_view([1]);
    let mut digests = digests.partition_view_mut([B, 8]);
    let mut window = messages.partition_view([B, 16]).load_masked(digests.index()).swap_bytes();
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
        let first = h
            + (e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
            + chosen
            + constants.load([t])
            + word;
        let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)) + most;
        state = [first + second, a, b, c, d + first, e, f, g];
        let (near, far) = (window.take(1, 1).squeeze(1), window.take(14, 1).squeeze(1));
        let near = near.rotate_right(7) ^ near.rotate_right(18) ^ (near >> 3);
        let far = far.rotate_right(17) ^ far.rotate_right(19) ^ (far >> 10);
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
    // Each with a bit behind it and its length at the end.
    let block = |text: &str| {
        let mut bytes = [0u8; 64];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        (bytes[text.len()], bytes[63]) = (0x80, 8 * text.len() as u8);
        bytes
    };
    let messages = ["abc", "", "a"].map(block).concat();
    let (messages, _) = messages.as_chunks::<4>();
    let messages: Vec<u32> = messages.iter().map(|&bytes| u32::from_ne_bytes(bytes)).collect();
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

/// A quarter round of ChaCha20 on a column or diagonal of words.
#[tile_fn]
fn quarter_round(words: [Tile<u32, 1>; 4]) -> [Tile<u32, 1>; 4] {
    let [a, b, c, d] = words;
    let a = a + b;
    let d = (d ^ a).rotate_left(16);
    let c = c + d;
    let b = (b ^ c).rotate_left(12);
    let a = a + b;
    let d = (d ^ a).rotate_left(8);
    let c = c + d;
    let b = (b ^ c).rotate_left(7);
    [a, b, c, d]
}

/// The key stream of ChaCha20 (RFC 8439) from a block's number on, B blocks of 16 words side by side.
#[tile_kernel]
fn key_stream<const B: usize>(
    key: &Tensor<u32, 8>,
    nonce: &Tensor<u32, 3>,
    first: u32,
    stream: &mut Tensor<u32, n, 16>,
) {
    let (key, nonce) = (key.partition_view([1]), nonce.partition_view([1]));
    let mut stream = stream.partition_view_mut([B, 16]);
    let [block, _] = stream.index();
    let constants: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    let mut start = [Tile::<u32, 1>::zeros([B]); 16];
    for i in 0..4 {
        start[i] = Tile::full([B], constants[i]);
    }
    for i in 0..8 {
        start[4 + i] = key.load([i]).broadcast([B]);
    }
    start[12] = Tile::iota([B], 0) + first + (block * B) as u32;
    for i in 0..3 {
        start[13 + i] = nonce.load([i]).broadcast([B]);
    }
    let mut words = start;
    for _ in 0..10 {
        for i in 0..4 {
            [words[i], words[4 + i], words[8 + i], words[12 + i]] =
                quarter_round([words[i], words[4 + i], words[8 + i], words[12 + i]]);
        }
        for i in 0..4 {
            [words[i], words[4 + (i + 1) % 4], words[8 + (i + 2) % 4], words[12 + (i + 3) % 4]] =
                quarter_round([
                    words[i],
                    words[4 + (i + 1) % 4],
                    words[8 + (i + 2) % 4],
                    words[12 + (i + 3) % 4],
                ]);
        }
    }
    let mut result = Tile::zeros([B, 16]);
    for i in 0..16 {
        result = result.insert([0, i], (words[i] + start[i]).unsqueeze(1));
    }
    stream.store_masked(result);
}

/// The block function in loops, checked by the example of RFC 8439, 2.3.2.
fn key_block(key: &[u32; 8], nonce: &[u32; 3], number: u32) -> [u32; 16] {
    let text = b"expand 32-byte k".as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes));
    let start: Vec<u32> = text.chain(*key).chain([number]).chain(*nonce).collect();
    let mut words = start.clone();
    for round in 0..20 {
        for i in 0..4 {
            let turn = |row: usize| 4 * row + (i + row * (round % 2)) % 4;
            let [a, b, c, d] = [0, 1, 2, 3].map(turn);
            for (x, y, z, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                words[x] = words[x].wrapping_add(words[y]);
                words[z] = (words[z] ^ words[x]).rotate_left(by);
            }
        }
    }
    std::array::from_fn(|i| words[i].wrapping_add(start[i]))
}

#[test]
fn a_key_stream_is_that_of_the_standard() {
    let key: [u32; 8] = std::array::from_fn(|i| 0x0302_0100 + 0x0404_0404 * i as u32);
    let nonce = [0x0900_0000, 0x4a00_0000, 0];
    let example = [
        0xe4e7_f110,
        0x1559_3bd1,
        0x1fdd_0f50,
        0xc471_20a3,
        0xc7f4_d1c7,
        0x0368_c033,
        0x9aaa_2204,
        0x4e6c_d4c3,
        0x4664_82d2,
        0x09aa_9f07,
        0x05d7_c214,
        0xa202_8bd9,
        0xd19c_12b5,
        0xb94e_16de,
        0xe883_d0cb,
        0x4e3c_50a2,
    ];
    assert_eq!(key_block(&key, &nonce, 1), example);
    let expected: Vec<u32> = (1..6).flat_map(|number| key_block(&key, &nonce, number)).collect();
    check_kernel!(key_stream<B = 4>(
        input key: (key, [8]), input nonce: (nonce, [3]), number first: (1u32),
        output stream: (vec![0u32; 5 * 16], [5, 16] => expected, 0.0),
    ));
}
