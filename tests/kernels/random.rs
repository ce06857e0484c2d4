//! Random numbers in kernels, against Philox written out once more.

use super::{Case, array, devices, widen};
use tile::ir::ops::Literal;
use tile::ir::{Array, Binding, DType};
use tile::prelude::*;

/// Bits at positions that the kernel computes itself: those of the tensor's elements, whatever the tile.
#[tile_kernel]
fn bits_of_a_tensor<const BM: usize, const BN: usize>(seed: u64, y: &mut Tensor<u32, m, n>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let row = Tile::<u64, 2>::iota([BM, 1], 0) + (i * BM) as u64;
    let column = Tile::<u64, 2>::iota([1, BN], 1) + (j * BN) as u64;
    y.store_masked(philox(row * n as u64 + column, seed).cast());
}

#[tile_kernel]
fn bits<const N: usize>(seed: u64, offset: u64, y: &mut Tensor<u32, n>) {
    let mut y = y.partition_view_mut([N]);
    let [i] = y.index();
    y.store_masked(Tile::random_bits([N], seed, offset + (i * N) as u64));
}

#[tile_kernel]
fn uniform_and_normal<const N: usize>(seed: u64, y: &mut Tensor<f32, 2, n>) {
    let mut y = y.partition_view_mut([2, N]);
    let [_, i] = y.index();
    let offset = i * N;
    let uniform = Tile::<f32, 1>::random_uniform([N], seed, offset);
    y.store_masked(stack([uniform, Tile::random_normal([N], seed, offset)], 0));
}

/// Of f64, from a stream and at positions.
#[tile_kernel]
fn doubles<const N: usize>(seed: u64, y: &mut Tensor<f64, 4, n>) {
    let mut y = y.partition_view_mut([4, N]);
    let [_, i] = y.index();
    let offset = i * N;
    let positions = Tile::<u64, 1>::iota([N], 0) + offset as u64;
    let uniform = Tile::<f64, 1>::random_uniform([N], seed, offset);
    let normal = Tile::<f64, 1>::random_normal([N], seed, offset);
    let uniform_at = Tile::<f64, 1>::random_uniform_at(positions, seed);
    let normal_at = Tile::<f64, 1>::random_normal_at(positions, seed);
    y.store_masked(stack([uniform, uniform_at, normal, normal_at], 0));
}

/// Numbers at the places of a tensor's elements: as uniform ones, normal ones and bits.
#[tile_kernel]
fn at_places<const BM: usize, const BN: usize>(
    seed: u64,
    uniform: &mut Tensor<f32, m, n>,
    normal: &mut Tensor<f32, m, n>,
    bits: &mut Tensor<u32, m, n>,
) {
    let mut uniform = uniform.partition_view_mut([BM, BN]);
    let mut normal = normal.partition_view_mut([BM, BN]);
    let mut bits = bits.partition_view_mut([BM, BN]);
    let [i, j] = uniform.index();
    let row = Tile::<u64, 2>::iota([BM, 1], 0) + (i * BM) as u64;
    let column = Tile::<u64, 2>::iota([1, BN], 1) + (j * BN) as u64;
    let positions = row * n as u64 + column;
    uniform.store_masked(Tile::random_uniform_at(positions, seed));
    normal.store_masked(Tile::random_normal_at(positions, seed));
    bits.store_masked(Tile::random_bits_at(positions, seed));
}

/// Words 0 and 1 of Philox4x32-10, as the paper has it: the two products, then the words and the key mixed.
fn words(position: u64, seed: u64) -> [u32; 2] {
    let mut word = [position as u32, (position >> 32) as u32, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let product = [0xd251_1f53u64 * u64::from(word[0]), 0xcd9e_8d57u64 * u64::from(word[2])];
        let (high, low) = (product.map(|p| (p >> 32) as u32), product.map(|p| p as u32));
        word = [high[1] ^ word[1] ^ key[0], low[1], high[0] ^ word[3] ^ key[1], low[0]];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    [word[0], word[1]]
}

fn scalar(value: u64) -> Array {
    Array::scalar(DType::U64, Literal::Int(i128::from(value)))
}

const SEED: u64 = 0x0123_4567_89ab_cdef;

#[test]
fn philox_in_this_file_has_the_known_answer() {
    assert_eq!(words(0, 0), [0x6627_e8d5, 0xe169_c58d]);
}

#[test]
fn bits_depend_on_the_place_in_the_tensor_alone() {
    let (m, n) = (5, 9);
    Case {
        ir: bits_of_a_tensor::ir(),
        bindings: &[("BM", Binding::Const(2)), ("BN", Binding::Const(4))],
        arguments: vec![scalar(SEED), array(&vec![0u32; m * n], &[m, n])],
        output: 1,
        expected: (0..m * n).map(|i| f64::from(words(i as u64, SEED)[0])).collect(),
        tolerance: 0.0,
        run: &|device| {
            let mut y = Tensor::zeros(device, [m, n])?;
            bits_of_a_tensor::<2, 4>(SEED, &mut y).launch()?;
            let narrow = y.to_vec()?;
            bits_of_a_tensor::<8, 3>(SEED, &mut y).launch()?;
            assert_eq!(y.to_vec()?, narrow);
            Ok(widen(&narrow))
        },
    }
    .check();
}

#[test]
fn bits_of_a_long_stream() {
    let (n, offset) = (70, u64::from(u32::MAX) - 20);
    Case {
        ir: bits::ir(),
        bindings: &[("N", Binding::Const(32))],
        arguments: vec![scalar(SEED), scalar(offset), array(&vec![0u32; n], &[n])],
        output: 2,
        expected: (0..n).map(|i| f64::from(words(offset + i as u64, SEED)[0])).collect(),
        tolerance: 0.0,
        run: &|device| {
            let mut y = Tensor::zeros(device, [n])?;
            bits::<32>(SEED, offset, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn uniform_and_normal_numbers() {
    let n = 100;
    let uniform = (0..n).map(|i| f64::from(words(i, 3)[0] >> 8) / 16_777_216.0);
    let normal = (0..n).map(|i| {
        let [first, second] = words(i, 3);
        let u = (f64::from(first) + 1.0) / 4_294_967_296.0;
        let v = f64::from(second >> 8) / 16_777_216.0;
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    });
    Case {
        ir: uniform_and_normal::ir(),
        bindings: &[("N", Binding::Const(16))],
        arguments: vec![scalar(3), array(&vec![0f32; 2 * n as usize], &[2, n as usize])],
        output: 1,
        expected: uniform.chain(normal).collect(),
        // Uniform numbers are exact; the angle has an error of 4e-7 before its cosine.
        tolerance: 4e-6,
        run: &|device| {
            let mut y = Tensor::zeros(device, [2, n as usize])?;
            uniform_and_normal::<16>(3, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn numbers_of_f64_have_53_bits() {
    let n = 100;
    let bits = |i: usize, seed: u64| {
        let [low, high] = words(i as u64, seed);
        (u64::from(high) << 32 | u64::from(low)) >> 11
    };
    let unit = 2f64.powi(-53);
    let uniform: Vec<f64> = (0..n).map(|i| bits(i, SEED) as f64 * unit).collect();
    let normal = |i: usize| {
        let u = (bits(i, SEED) + 1) as f64 * unit;
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * (bits(i, !SEED) as f64 * unit)).cos()
    };
    let normal: Vec<f64> = (0..n).map(normal).collect();
    let expected = [uniform.clone(), uniform.clone(), normal.clone(), normal].concat();
    Case {
        ir: doubles::ir(),
        bindings: &[("N", Binding::Const(16))],
        arguments: vec![scalar(SEED), array(&vec![0f64; 4 * n], &[4, n])],
        output: 1,
        expected,
        // The angle has an error of 2⁻⁵⁰ before its cosine.
        tolerance: 1e-14,
        run: &|device| {
            let mut y = Tensor::zeros(device, [4, n])?;
            doubles::<16>(SEED, &mut y).launch()?;
            let y = y.to_vec()?;
            assert_eq!(y[..n], uniform, "the same bits on every device");
            Ok(y)
        },
    }
    .check();
}

/// Numbers at given positions are those of a stream, in tiles of any extents.
#[test]
fn numbers_at_places_do_not_depend_on_the_tile() {
    let (m, n) = (5, 9);
    for (device, label) in devices() {
        let [mut uniform, mut normal] = [0, 1].map(|_| Tensor::<f32>::zeros(&device, [m, n]).unwrap());
        let mut bits = Tensor::<u32>::zeros(&device, [m, n]).unwrap();
        let mut run = |narrow: bool| {
            let launch = match narrow {
                true => at_places::<2, 4>(SEED, &mut uniform, &mut normal, &mut bits),
                false => at_places::<8, 3>(SEED, &mut uniform, &mut normal, &mut bits),
            };
            launch.launch().unwrap();
            (uniform.to_vec().unwrap(), normal.to_vec().unwrap(), bits.to_vec().unwrap())
        };
        let (uniform, normal, bits) = run(true);
        let wide = run(false);
        assert_eq!((&wide.0, &wide.2), (&uniform, &bits), "{label}");
        assert_eq!(bits, Tile::<u32, 1>::random_bits([m * n], SEED, 0).to_vec(), "{label}");
        assert_eq!(uniform, Tile::<f32, 1>::random_uniform([m * n], SEED, 0).to_vec(), "{label}");
        let expected = Tile::<f32, 1>::random_normal([m * n], SEED, 0).to_vec();
        for ((narrow, wide), expected) in normal.iter().zip(&wide.1).zip(&expected) {
            let near = |number: &f32| (number - expected).abs() < 4e-6;
            assert!(near(narrow) && near(wide), "{label}: {narrow} and {wide}, {expected} expected");
        }
    }
}

#[tile_kernel]
fn bits_before_the_first(seed: u64, y: &mut Tensor<u32, n>) {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::random_bits([4], seed, -1));
}

/// The position before the first is the last one there is.
#[test]
fn streams_begin_below_zero() {
    let bits = |count: usize, offset: u64| Tile::<u32, 1>::random_bits([count], SEED, offset).to_vec();
    for (device, label) in devices() {
        let mut y = Tensor::<u32>::zeros(&device, [4]).unwrap();
        bits_before_the_first(SEED, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [bits(1, u64::MAX), bits(3, 0)].concat(), "{label}");
    }
}
