//! Constants that tiles of integers are looked up in, and tiles made of constants.

use super::{check_exact, devices, numbers};
use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    /// The numbers of the format NF4, quantiles of a normal distribution (QLoRA, arXiv 2305.14314, appendix E).
    pub(super) const NF4: [f32; 16] = [
        -1.0,
        -0.6961928,
        -0.52507305,
        -0.3949175,
        -0.28444138,
        -0.18477343,
        -0.091050036,
        0.0,
        0.0795803,
        0.1609302,
        0.2461123,
        0.33791524,
        0.44070983,
        0.562617,
        0.72295684,
        1.0,
    ];

    /// Weights of four bits, two to a byte, the lower first, with a scale for each row.
    #[tile_kernel]
    pub(crate) fn dequantized<const B: usize, const K: usize>(
        codes: &Tensor<u8, m, K>,
        scales: &Tensor<f32, m>,
        y: &mut Tensor<f32, m, { 2 * K }>,
    ) {
        let codes = codes.partition_view([B, K]);
        let scales = scales.partition_view([B]);
        let mut y = y.partition_view_mut([B, 2 * K]);
        let [i, _] = y.index();
        let codes = codes.load_masked([i, 0]);
        let pairs = stack([codes & 15, codes >> 4], 2).lookup(NF4);
        y.store_masked(pairs.reshape([B, 2 * K]) * scales.load_masked([i]).reshape([B, 1]));
    }

    const NIBBLES: [u32; 16] = [
        0x0000_0000,
        0x1db7_1064,
        0x3b6e_20c8,
        0x26d9_30ac,
        0x76dc_4190,
        0x6b6b_51f4,
        0x4db2_6158,
        0x5005_713c,
        0xedb8_8320,
        0xf00f_9344,
        0xd6d6_a3e8,
        0xcb61_b38c,
        0x9b64_c2b0,
        0x86d3_d2d4,
        0xa00a_e278,
        0xbdbd_f21c,
    ];

    /// A CRC-32 of each row, by half a byte at a time.
    #[tile_kernel]
    pub(crate) fn checksums<const B: usize>(x: &Tensor<u8, m, n>, y: &mut Tensor<u32, m>) {
        let x = x.partition_view([B, 1]);
        let mut y = y.partition_view_mut([B]);
        let [i] = y.index();
        let mut sum = Tile::<u32, 1>::full([B], 0xffff_ffff);
        for p in 0..n {
            let byte = x.load_masked([i, p]).reshape([B]).cast::<u32>();
            for half in [byte, byte >> 4] {
                sum = ((sum ^ half) & 15).lookup(NIBBLES) ^ (sum >> 4);
            }
        }
        y.store_masked(!sum);
    }

    /// A tile of constants beside a tile of a tensor; truths by numbers, some of them outside.
    #[tile_kernel]
    pub(crate) fn weighted(x: &Tensor<i64, n>, y: &mut Tensor<i64, n>) {
        const WEIGHTS: [i64; 8] = [3, 1, 4, 1, 5, 9, 2, 6];
        let mut y = y.partition_view_mut([8]);
        let x = x.partition_view([8]).load_masked(y.index());
        let is_prime = x.lookup([false, false, true, true, false, true, false, true]);
        y.store_masked(select(
            is_prime,
            x * Tile::from_array(WEIGHTS),
            Tile::from_array(WEIGHTS).gather(x, 0) - 10,
        ));
    }

    const DIGITS: [u8; 16] = *b"0123456789abcdef";

    /// Byte strings, where arrays are: of the module, the kernel, a `const` block and a function, taken apart and run over.
    #[tile_kernel]
    pub(crate) fn spelled<const B: usize>(x: &Tensor<u8, n>, y: &mut Tensor<u8, 8, n>) {
        const VOWELS: [u8; 5] = *b"aeiou";
        let mut y = y.partition_view_mut([1, B]).spanning([0]);
        let [_, j] = y.index();
        let x = x.partition_view([B]).load_masked([j]);
        let ([first, .., last], block) = (*b"A\xffz", const { *b"\0\n" });
        let mut sum = Tile::zeros([B]);
        for byte in *b"sum" {
            sum = sum * 3 + byte;
        }
        let rows = [
            x.lookup(DIGITS),
            x.lookup(VOWELS),
            x.lookup(*b"\x80."),
            x + first,
            x + last,
            x + block[1],
            sum,
            bracket(x),
        ];
        for i in 0..rows.len() {
            y.at([i]).store_masked(rows[i].unsqueeze(0));
        }
    }

    #[tile_fn]
    fn bracket(x: Tile<u8, 1>) -> Tile<u8, 1> {
        (x & 1).lookup(*b"[]")
    }
}

use kernels::{NF4, checksums, dequantized, spelled, weighted};

#[test]
fn codes_of_four_bits_are_looked_up() {
    let codes: Vec<u8> = (0..7 * 24).map(|i| (i * 37 % 251) as u8).collect();
    let scales = numbers::<f32>(7, 1);
    let expected = (0..7 * 48).map(|at| {
        let (row, column) = (at / 48, at % 48);
        let code = codes[row * 24 + column / 2] >> (4 * (column % 2)) & 15;
        NF4[usize::from(code)] * scales[row]
    });
    let expected: Vec<f32> = expected.collect();
    check_exact!(dequantized<B = 4, K = 24>(codes: codes, [7, 24]; scales: scales, [7]) -> f32, [7, 48] => expected);
}

#[test]
fn checksums_are_those_of_bits() {
    let x: Vec<u8> = (0..5 * 9).map(|i| (i * 101 % 256) as u8).collect();
    let by_bits = |bytes: &[u8]| {
        let byte = |sum: u32, byte: &u8| {
            (0..8)
                .fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
        };
        !bytes.iter().fold(!0, byte)
    };
    assert_eq!(by_bits(b"123456789"), 0xcbf4_3926);
    let expected: Vec<u32> = x.chunks(9).map(by_bits).collect();
    check_exact!(checksums<B = 4>(x: x, [5, 9]) -> u32, [5] => expected);
}

#[test]
fn tiles_are_made_of_constants() {
    let x: Vec<i64> = (0..21).map(|i| [0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -7, 1 << 40, 255][i % 13]).collect();
    let weights = [3, 1, 4, 1, 5, 9, 2, 6];
    let one = |(at, &x): (usize, &i64)| match x {
        2 | 3 | 5 | 7 => x * weights[at % 8],
        0..8 => weights[x as usize] - 10,
        _ => -10,
    };
    let expected: Vec<i32> = x.iter().enumerate().map(one).map(|y| y as i32).collect();
    check_exact!(weighted<>(x: x, [21]) -> i64, [21] => expected);
}

#[test]
fn byte_strings_are_arrays_of_bytes() {
    let x = [0u8, 1, 4, 5, 9, 15, 16, 255];
    let of = |table: &[u8], x: u8| table.get(usize::from(x)).copied().unwrap_or(0);
    let sum = b"sum".iter().fold(0u8, |sum, &byte| sum.wrapping_mul(3).wrapping_add(byte));
    let expected = [
        x.map(|x| of(b"0123456789abcdef", x)),
        x.map(|x| of(b"aeiou", x)),
        x.map(|x| of(b"\x80.", x)),
        x.map(|x| x.wrapping_add(b'A')),
        x.map(|x| x.wrapping_add(b'z')),
        x.map(|x| x.wrapping_add(b'\n')),
        [sum; 8],
        x.map(|x| b"[]"[usize::from(x & 1)]),
    ];
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [8]).unwrap();
        let mut y = Tensor::zeros(&device, [8, 8]).unwrap();
        spelled::<4>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected.concat(), "{label}");
    }
}

/// Just above halfway between one and the next f32, and at halfway in f64.
#[tile_kernel]
#[allow(clippy::excessive_precision, reason = "that is the test")]
fn above_halfway(x: &Tensor<i32, 4>, w: &Tensor<f32, 4>, y: &mut Tensor<f32, 4>) {
    let mut y = y.partition_view_mut([4]);
    let x = x.partition_view([4]).load([0]);
    y.store(x.lookup([1.000000059604644775390625001, 2.0]) * w.partition_view([4]).load([0]));
}

#[test]
fn numbers_of_tables_are_rounded_once() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[0, 1, 0, 1], [4]).unwrap();
        let (w, mut y) = (Tensor::ones(&device, [4]).unwrap(), Tensor::zeros(&device, [4]).unwrap());
        above_halfway(&x, &w, &mut y).launch().unwrap();
        let next = 1.0f32.next_up();
        assert_eq!(y.to_vec().unwrap(), [next, 2.0, next, 2.0], "{label}");
    }
}
