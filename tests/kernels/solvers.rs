//! Systems of equations, one to a block or side by side: factors with pivots, reflections, and three diagonals.

use super::whole::check_kernel;
use super::{compare, devices, numbers};
use tile::prelude::*;

/// L and U in one matrix, rows exchanged so that the largest number of a column divides it.
#[tile_kernel]
fn factored<const N: usize>(
    a: &Tensor<f64, b, N, N>,
    lu: &mut Tensor<f64, b, N, N>,
    pivots: &mut Tensor<i32, b, N>,
) {
    let mut lu = lu.partition_view_mut([1, N, N]);
    let mut pivots = pivots.unsqueeze(2).partition_view_mut([1, N, 1]);
    let mut m = a.partition_view([1, N, N]).load(lu.index()).reshape([N, N]);
    let mut order = Tile::zeros([N, 1]);
    let rows = Tile::<i32, 2>::iota([N, 1], 0);
    let columns = Tile::<i32, 2>::iota([1, N], 1);
    for k in 0..N {
        let at = k as i32;
        let pivot = select(rows >= at, m.take(k, 1).abs(), -1.0).argmax(0);
        order = select(rows == at, pivot, order);
        let (upper, lower) = (m.take(k, 0), m.take(pivot.item() as usize, 0));
        m = select(rows == at, lower, select(rows == pivot, upper, m));
        let head = m.take(k, 0);
        let factors = m.take(k, 1) / head.take(k, 1);
        let below = rows > at;
        m = select(below & (columns > at), m - factors * head, m);
        m = select(below & (columns == at), factors, m);
    }
    lu.store(m.reshape([1, N, N]));
    pivots.store(order.reshape([1, N, 1]));
}

#[test]
fn rows_are_exchanged_for_the_largest_pivot() {
    let (b, n) = (3, 6);
    let a = numbers::<f64>(b * n * n, 5);
    let (mut factors, mut pivots) = (a.clone(), vec![]);
    for m in factors.chunks_mut(n * n) {
        for k in 0..n {
            // The first of equals.
            let pivot = (k..n).rev().max_by(|&i, &j| m[i * n + k].abs().total_cmp(&m[j * n + k].abs()));
            let pivot = pivot.expect("there is a row left");
            pivots.push(pivot as i32);
            (0..n).for_each(|c| m.swap(k * n + c, pivot * n + c));
            for i in k + 1..n {
                m[i * n + k] /= m[k * n + k];
                (k + 1..n).for_each(|c| m[i * n + c] -= m[i * n + k] * m[k * n + c]);
            }
        }
    }
    check_kernel!(factored<N = 6>(
        input a: (a, [b, n, n]), output lu: (vec![0f64; a.len()], [b, n, n] => factors, 1e-12),
        output pivots: (vec![0; b * n], [b, n] => pivots, 0.0),
    ));
}

/// Householder's reflections: each makes a column zero below the diagonal. The signs are such that nothing cancels.
#[tile_kernel]
fn qr<const M: usize, const N: usize>(
    a: &Tensor<f64, b, M, N>,
    q: &mut Tensor<f64, b, M, M>,
    r: &mut Tensor<f64, b, M, N>,
) {
    let mut q = q.partition_view_mut([1, M, M]);
    let mut r = r.partition_view_mut([1, M, N]);
    let mut rest = a.partition_view([1, M, N]).load(r.index()).reshape([M, N]);
    let mut turned = Tile::eye([M, M]);
    let rows = Tile::<i32, 2>::iota([M, 1], 0);
    for k in 0..N {
        let column = select(rows >= k as i32, rest.take(k, 1), 0.0);
        let norm = sqrt((column * column).sum(0));
        let axis = column + select(rows == k as i32, copysign(norm, column.take(k, 0)), 0.0);
        let square = (axis * axis).sum(0);
        let scale = select(square > 0.0, 2.0 / square, 0.0);
        rest -= axis * ((axis * rest).sum(0) * scale);
        turned -= (turned * axis.t()).sum(1) * (axis.t() * scale);
    }
    q.store(turned.reshape([1, M, M]));
    r.store(rest.reshape([1, M, N]));
}

/// `result[e, i, j] = Σ over t of left(e, i, t)·right(e, t, j)`.
fn products(
    [count, rows, depth, columns]: [usize; 4],
    left: impl Fn(usize, usize, usize) -> f64,
    right: impl Fn(usize, usize, usize) -> f64,
) -> Vec<f64> {
    let element = |at: usize| {
        let (e, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
        (0..depth).map(|t| left(e, i, t) * right(e, t, j)).sum()
    };
    (0..count * rows * columns).map(element).collect()
}

#[test]
fn columns_are_reflected_onto_axes() {
    let (b, m, n) = (3, 6, 4);
    let a = numbers::<f64>(b * m * n, 1);
    let unit: Vec<f64> = (0..b * m * m).map(|at| f64::from(at / m % m == at % m)).collect();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &a, [b, m, n]).unwrap();
        let mut q = Tensor::zeros(&device, [b, m, m]).unwrap();
        let mut r = Tensor::zeros(&device, [b, m, n]).unwrap();
        qr::<6, 4>(&x, &mut q, &mut r).launch().unwrap();
        let (q, r) = (q.to_vec().unwrap(), r.to_vec().unwrap());
        let q = |e: usize, i: usize, j: usize| q[(e * m + i) * m + j];
        let r = |e: usize, i: usize, j: usize| r[(e * m + i) * n + j];
        compare(&format!("Q·R on {label}"), &products([b, m, m, n], q, r), &a, 1e-12);
        compare(&format!("Qᵀ·Q on {label}"), &products([b, m, m, m], |e, i, t| q(e, t, i), q), &unit, 1e-12);
        let below = (0..b * m * n).filter(|at| at / n % m > at % n);
        let below: Vec<f64> = below.map(|at| r(at / (m * n), at / n % m, at % n)).collect();
        compare(&format!("below R on {label}"), &below, &vec![0.0; below.len()], 1e-12);
    }
}

/// Systems of three diagonals, B of them side by side and of any length: forwards without what is below the diagonal,
/// then backwards.
#[tile_kernel]
fn three_diagonals<const B: usize>(
    lower: &Tensor<f64, n, s>,
    diagonal: &Tensor<f64, n, s>,
    upper: &Tensor<f64, n, s>,
    rhs: &Tensor<f64, n, s>,
    scaled: &mut Tensor<f64, n, s>,
    x: &mut Tensor<f64, n, s>,
) {
    let lower = lower.partition_view([1, B]);
    let diagonal = diagonal.partition_view([1, B]);
    let upper = upper.partition_view([1, B]);
    let rhs = rhs.partition_view([1, B]);
    let mut scaled = scaled.partition_view_mut([1, B]).spanning([0]);
    let mut x = x.partition_view_mut([1, B]).spanning([0]);
    let [_, j] = x.index();
    let (mut above, mut result) = (Tile::zeros([1, B]), Tile::zeros([1, B]));
    for i in 0..n {
        let below = lower.load_masked([i, j]);
        let scale = 1.0 / (diagonal.load_masked_or(1.0, [i, j]) - below * above);
        above = upper.load_masked([i, j]) * scale;
        result = (rhs.load_masked([i, j]) - below * result) * scale;
        scaled.at([i]).store_masked(above);
        x.at([i]).store_masked(result);
    }
    let mut next = Tile::zeros([1, B]);
    for i in (0..n).rev() {
        next = x.at([i]).load_masked() - scaled.at([i]).load_masked() * next;
        x.at([i]).store_masked(next);
    }
}

#[test]
fn three_diagonals_are_solved_forwards_and_backwards() {
    let (n, s) = (9, 11);
    let [lower, upper, solution] = [1, 3, 4].map(|seed| numbers::<f64>(n * s, seed));
    let diagonal: Vec<f64> = numbers::<f64>(n * s, 2).iter().map(|x| x + 4.0).collect();
    let at = |x: &[f64], i: Option<usize>| i.and_then(|i| x.get(i)).copied().unwrap_or(0.0);
    let element = |i: usize| {
        let (before, after) = (at(&solution, i.checked_sub(s)), at(&solution, Some(i + s)));
        lower[i] * before + diagonal[i] * solution[i] + upper[i] * after
    };
    let rhs: Vec<f64> = (0..n * s).map(element).collect();
    let mut scaled = vec![0.0; n * s];
    for i in 0..n * s {
        let above = at(&scaled, i.checked_sub(s));
        scaled[i] = upper[i] / (diagonal[i] - lower[i] * above);
    }
    check_kernel!(three_diagonals<B = 4>(
        input lower: (lower, [n, s]), input diagonal: (diagonal, [n, s]), input upper: (upper, [n, s]),
        input rhs: (rhs, [n, s]),
        output scaled: (vec![0f64; n * s], [n, s] => scaled, 1e-12),
        output x: (vec![0f64; n * s], [n, s] => solution, 1e-12),
    ));
}
