//! Matrix products: `mma` with edge tiles, mixed formats and generic elements.

use super::whole::check_kernel;
use super::{Case, array, devices, numbers, widen};
use tile::ir::{Binding, DType};
use tile::kernel::Element;
use tile::prelude::*;

/// C = A·B.
#[tile_kernel]
pub(crate) fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

/// C = α·A·Bᵀ + β·C for any element that has an f32 accumulator.
#[tile_kernel]
fn product_transposed<T: Float + MmaOperand<f32>, const B: usize>(
    a: &Tensor<T, m, k>,
    b: &Tensor<T, n, k>,
    c: &mut Tensor<T, m, n>,
    alpha: f32,
    beta: f32,
) {
    let a = a.partition_view([B, B]);
    let b = b.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([B, B]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([j, p]).t(), acc);
    }
    let old = c.load_masked().cast::<f32>();
    c.store_masked((alpha * acc + beta * old).cast::<T>());
}

/// Row-major `[m, k] · [k, n]`, summed in f64.
fn product(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        }
    }
    c
}

#[test]
fn matmul_agrees_with_loops_on_edge_tiles() {
    for [m, n, k] in [[1, 1, 1], [16, 8, 8], [33, 17, 29]] {
        let (a, b) = (numbers::<bf16>(m * k, 1), numbers::<bf16>(k * n, 2));
        Case {
            ir: matmul::ir(),
            bindings: &[("BM", Binding::Const(16)), ("BN", Binding::Const(8)), ("BK", Binding::Const(4))],
            arguments: vec![array(&a, &[m, k]), array(&b, &[k, n]), array(&vec![0f32; m * n], &[m, n])],
            output: 2,
            expected: product(&widen(&a), &widen(&b), [m, n, k]),
            // Products of multiples of 1/64 and their sums are exact in f32.
            tolerance: 0.0,
            run: &|device| {
                let a = Tensor::from_slice(device, &a, [m, k])?;
                let b = Tensor::from_slice(device, &b, [k, n])?;
                let mut c = Tensor::zeros(device, [m, n])?;
                matmul::<16, 8, 4>(&a, &b, &mut c).launch()?;
                Ok(widen(&c.to_vec()?))
            },
        }
        .check();
    }
}

fn check_transposed<T: Float + MmaOperand<f32>>(tolerance: f64) {
    let [m, n, k] = [13, 11, 9];
    let (a, b, c) = (numbers::<T>(m * k, 3), numbers::<T>(n * k, 4), numbers::<T>(m * n, 5));
    let wide = widen(&b);
    let transposed: Vec<f64> = (0..k * n).map(|at| wide[at % n * k + at / n]).collect();
    let sum = product(&widen(&a), &transposed, [m, n, k]);
    Case {
        ir: product_transposed::ir(),
        bindings: &[("T", Binding::Elem(T::DTYPE)), ("B", Binding::Const(4))],
        arguments: vec![
            array(&a, &[m, k]),
            array(&b, &[n, k]),
            array(&c, &[m, n]),
            array(&[0.5f32], &[]),
            array(&[-2f32], &[]),
        ],
        output: 2,
        expected: sum.iter().zip(widen(&c)).map(|(sum, old)| 0.5 * sum - 2.0 * old).collect(),
        tolerance,
        run: &|device| {
            let a = Tensor::from_slice(device, &a, [m, k])?;
            let b = Tensor::from_slice(device, &b, [n, k])?;
            let mut c = Tensor::from_slice(device, &c, [m, n])?;
            product_transposed::<T, 4>(&a, &b, &mut c, 0.5, -2.0).launch()?;
            Ok(widen(&c.to_vec()?))
        },
    }
    .check();
}

#[test]
fn a_generic_product_works_for_every_float_with_an_f32_accumulator() {
    // One rounding to the element format at the end: half a unit in the last place.
    check_transposed::<f32>(0.0);
    check_transposed::<f16>(f64::powi(2.0, -11));
    check_transposed::<bf16>(f64::powi(2.0, -8));
    assert_eq!(<f16 as Element>::DTYPE, DType::F16);
}

/// Sums whose format nothing says: there is one for factors of bf16, and a bound names that of `T`.
#[tile_kernel]
fn rounded<T: Float + MmaOperand<f32>, const B: usize>(
    a: &Tensor<bf16, m, m>,
    b: &Tensor<T, m, m>,
    c: &mut Tensor<bf16, m, m>,
    d: &mut Tensor<T, m, m>,
) {
    let a = a.partition_view([B, B]);
    let b = b.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    let mut d = d.partition_view_mut([B, B]);
    let [i, j] = c.index();
    let mut square = Tile::zeros([B, B]);
    let mut other = Tile::zeros([B, B]);
    for p in 0..a.tiles(1) {
        square = mma(a.load_masked([i, p]), a.load_masked([p, j]), square);
        other = mma(b.load_masked([i, p]), b.load_masked([p, j]), other);
    }
    c.store_masked(square.cast::<bf16>());
    d.store_masked(other.cast::<T>());
}

#[test]
fn the_format_of_sums_follows_from_the_factors() {
    let m = 5;
    let (a, b) = (numbers::<bf16>(m * m, 6), numbers::<f16>(m * m, 7));
    let [squares, others] = [widen(&a), widen(&b)].map(|factor| product(&factor, &factor, [m, m, m]));
    for (device, name) in devices() {
        let run = || -> tile::Result<_> {
            let (a, b) = (Tensor::from_slice(&device, &a, [m, m])?, Tensor::from_slice(&device, &b, [m, m])?);
            let mut c = Tensor::zeros(&device, [m, m])?;
            let mut d = Tensor::zeros(&device, [m, m])?;
            rounded::<f16, 4>(&a, &b, &mut c, &mut d).launch()?;
            Ok((c.to_vec()?, d.to_vec()?))
        };
        let (c, d) = run().unwrap();
        // Sums of products of multiples of 1/64 are exact in f32, so that they are rounded once.
        let expected: (Vec<bf16>, Vec<f16>) = (
            squares.iter().map(|&sum| bf16::from_f64(sum)).collect(),
            others.iter().map(|&sum| f16::from_f64(sum)).collect(),
        );
        assert_eq!((c, d), expected, "{name}");
    }
}

#[test]
fn the_ir_of_matmul_is_readable() {
    insta::assert_snapshot!(matmul::ir());
}

/// X·Xᵀ of every matrix: both factors are one tile.
#[tile_kernel]
fn gram<const M: usize, const K: usize>(x: &Tensor<bf16, b, M, k>, c: &mut Tensor<f32, b, M, M>) {
    let x = x.partition_view([1, M, K]);
    let mut c = c.partition_view_mut([1, M, M]);
    let [i, _, _] = c.index();
    let mut sums = Tile::zeros([M, M]);
    for p in 0..x.tiles(2) {
        let x = x.load_masked([i, 0, p]).reshape([M, K]);
        sums = mma(x, x.t(), sums);
    }
    c.store_masked(sums.reshape([1, M, M]));
}

#[test]
fn both_factors_may_be_one_tile() {
    let (b, m, k) = (3, 128, 200);
    let x = numbers::<bf16>(b * m * k, 8);
    let wide = widen(&x);
    let at = |i: usize, row: usize, p: usize| wide[(i * m + row) * k + p];
    let element = |at_c: usize| {
        let (i, row, column) = (at_c / (m * m), at_c / m % m, at_c % m);
        (0..k).map(|p| at(i, row, p) * at(i, column, p)).sum::<f64>()
    };
    let expected: Vec<f64> = (0..b * m * m).map(element).collect();
    check_kernel!(gram<M = 128, K = 64>(
        input x: (x, [b, m, k]), output c: (vec![0f32; b * m * m], [b, m, m] => expected, 0.0),
    ));
}

/// Sums that shrink by what a first product says, and grow by a second one both of whose factors are loaded.
#[tile_kernel(where(n % 64 == 0))]
fn gated<const M: usize>(
    q: &Tensor<bf16, M, 64>,
    k: &Tensor<bf16, n, 64>,
    a: &Tensor<bf16, M, n>,
    v: &Tensor<bf16, n, 64>,
    y: &mut Tensor<f32, M, 64>,
) {
    let q = q.partition_view([M, 64]).load([0, 0]);
    let (k, v, a) = (k.partition_view([64, 64]), v.partition_view([64, 64]), a.partition_view([M, 64]));
    let mut y = y.partition_view_mut([M, 64]);
    let mut sums = Tile::zeros([M, 64]);
    for p in 0..k.tiles(0) {
        let scores = mma(q, k.load([p, 0]).t(), Tile::zeros([M, 64]));
        sums = mma(a.load([0, p]), v.load([p, 0]), sums * exp(scores.max(1) * -1.0));
    }
    y.store(sums);
}

#[test]
fn a_product_of_loaded_factors_may_wait_for_another_one() {
    let (m, n) = (128, 192);
    let [q, a, k, v] =
        [(m * 64, 1), (m * n, 2), (n * 64, 3), (n * 64, 4)].map(|(count, seed)| numbers::<bf16>(count, seed));
    let wide = [&q, &a, &k, &v].map(|values| widen(values));
    let [wide_q, wide_a, wide_k, wide_v] = &wide;
    let mut expected = vec![0.0; m * 64];
    for (row, sums) in expected.chunks_mut(64).enumerate() {
        for first in (0..n).step_by(64) {
            let score =
                |key: usize| (0..64).map(|e| wide_q[row * 64 + e] * wide_k[key * 64 + e]).sum::<f64>();
            let most = (first..first + 64).map(score).fold(f64::NEG_INFINITY, f64::max);
            for (column, sum) in sums.iter_mut().enumerate() {
                let added = (first..first + 64).map(|key| wide_a[row * n + key] * wide_v[key * 64 + column]);
                *sum = *sum * (-most).exp() + added.sum::<f64>();
            }
        }
    }
    check_kernel!(gated<M = 128>(
        input q: (q, [m, 64]), input k: (k, [n, 64]), input a: (a, [m, n]), input v: (v, [n, 64]),
        output y: (vec![0f32; m * 64], [m, 64] => expected, 1e-4),
    ));
}
