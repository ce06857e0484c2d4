//! Kernels of linear algebra: factors and inverses of small matrices, a Fourier transform as products, shares of a
//! product, sparse matrices.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// The L of A = L·Lᵀ, of a batch of matrices, column by column.
#[tile_kernel]
fn cholesky<const N: usize>(a: &Tensor<f64, b, N, N>, l: &mut Tensor<f64, b, N, N>) {
    let mut l = l.partition_view_mut([1, N, N]);
    let mut a = a.partition_view([1, N, N]).load(l.index()).squeeze(0);
    let row = Tile::<i32, 2>::iota([N, 1], 0);
    let column = Tile::<i32, 2>::iota([1, N], 1);
    let mut factor = Tile::zeros([N, N]);
    for k in 0..N {
        let pivot = sqrt(a.take(k, 0).take(k, 1));
        let next = select(row.ge(k as i32), a.take(k, 1) / pivot, 0.0);
        factor = select(column.eq(k as i32), next, factor);
        a -= next * next.t();
    }
    l.store(factor.unsqueeze(0));
}

/// The inverses of a batch of matrices, by elimination with the largest pivots.
#[tile_kernel]
fn inverse<const N: usize>(a: &Tensor<f64, b, N, N>, y: &mut Tensor<f64, b, N, N>) {
    let mut y = y.partition_view_mut([1, N, N]);
    let mut a = a.partition_view([1, N, N]).load(y.index()).squeeze(0);
    let mut inverse = Tile::eye([N, N]);
    let row = Tile::<i32, 2>::iota([N, 1], 0);
    for k in 0..N {
        let this = row.eq(k as i32);
        let largest = select(row.ge(k as i32), a.take(k, 1).abs(), -1.0).argmax(0).item();
        let swapped = select(this, largest, select(row.eq(largest), k as i32, row)).broadcast([N, N]);
        (a, inverse) = (a.gather(swapped, 0), inverse.gather(swapped, 0));
        let (factor, pivot) = (a.take(k, 1), a.take(k, 0).take(k, 1));
        let (left, right) = (a.take(k, 0) / pivot, inverse.take(k, 0) / pivot);
        a = select(this, left, a - factor * left);
        inverse = select(this, right, inverse - factor * right);
    }
    y.store(inverse.unsqueeze(0));
}

/// The product of two matrices of n rows.
fn product(n: usize, a: &[f64], b: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let element = |at: usize| (0..n).map(|p| a[at / n * n + p] * b(p, at % n)).sum();
    (0..n * n).map(element).collect()
}

#[test]
fn factors_and_inverses() {
    let (b, n) = (3, 8);
    let lower: Vec<f64> = (0..b * n * n)
        .map(|at| match (at / n % n, at % n) {
            (i, j) if i == j => 1.0 + (at % 5) as f64 * 0.25,
            (i, j) if i > j => ((at * 7) % 9) as f64 * 0.125 - 0.5,
            _ => 0.0,
        })
        .collect();
    let squares: Vec<f64> = lower.chunks(n * n).flat_map(|l| product(n, l, |i, j| l[j * n + i])).collect();
    check_kernel!(cholesky<N = 8>(
        input a: (squares, [b, n, n]), output l: (vec![0.0f64; b * n * n], [b, n, n] => lower, 1e-12),
    ));
    // What the kernel gives times the matrix is 1: the inverse itself by columns of L, solved forwards and backwards.
    let inverses: Vec<f64> = lower
        .chunks(n * n)
        .flat_map(|l| {
            let columns: Vec<Vec<f64>> = (0..n).map(|column| solve(n, l, column)).collect();
            (0..n * n).map(|at| columns[at % n][at / n]).collect::<Vec<f64>>()
        })
        .collect();
    // Rows in another order, so that pivots are looked for; then the inverse has its columns in that order.
    let turned = |matrix: &[f64], by_row: bool| -> Vec<f64> {
        let from =
            |at: usize| if by_row { (at / n + 3) % n * n + at % n } else { at / n * n + (at % n + 3) % n };
        (0..n * n).map(|at| matrix[from(at)]).collect()
    };
    let a: Vec<f64> = squares.chunks(n * n).flat_map(|matrix| turned(matrix, true)).collect();
    let expected: Vec<f64> = inverses.chunks(n * n).flat_map(|matrix| turned(matrix, false)).collect();
    check_kernel!(inverse<N = 8>(
        input a: (a, [b, n, n]), output y: (vec![0.0f64; b * n * n], [b, n, n] => expected, 1e-9),
    ));
}

/// x of L·Lᵀ·x = e, where e is a unit vector.
fn solve(n: usize, l: &[f64], unit: usize) -> Vec<f64> {
    let mut x = vec![0.0; n];
    for i in 0..n {
        let known: f64 = (0..i).map(|j| l[i * n + j] * x[j]).sum();
        x[i] = (if i == unit { 1.0 } else { 0.0 } - known) / l[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| l[j * n + i] * x[j]).sum();
        x[i] = (x[i] - known) / l[i * n + i];
    }
    x
}

/// The Fourier transform of N² points: as N × N points, transforms of columns, a turn of each point, of rows.
#[tile_kernel]
fn fourier<const N: usize>(
    re: &Tensor<f32, b, { N * N }>,
    im: &Tensor<f32, b, { N * N }>,
    out_re: &mut Tensor<f32, b, { N * N }>,
    out_im: &mut Tensor<f32, b, { N * N }>,
) {
    let mut out_re = out_re.partition_view_mut([1, N * N]);
    let mut out_im = out_im.partition_view_mut([1, N * N]);
    let re = re.partition_view([1, N * N]).load(out_re.index()).reshape([N, N]);
    let im = im.partition_view([1, N * N]).load(out_im.index()).reshape([N, N]);
    let turns = Tile::<i32, 2>::iota([N, N], 0) * Tile::<i32, 2>::iota([N, N], 1);
    let circle = -2.0 * std::f32::consts::PI / N as f32;
    let angle = (turns % N as i32).cast::<f32>() * circle;
    let (c, s) = (cos(angle), sin(angle));
    let zero = Tile::<f32, 2>::zeros([N, N]);
    let (a, b) = (mma(c, re, zero) - mma(s, im, zero), mma(c, im, mma(s, re, zero)));
    let angle = turns.cast::<f32>() * (circle / N as f32);
    let (a, b) = (a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle));
    out_re.store((mma(a, c, zero) - mma(b, s, zero)).t().reshape([1, N * N]));
    out_im.store(mma(b, c, mma(a, s, zero)).t().reshape([1, N * N]));
}

#[test]
fn a_fourier_transform_is_products() {
    let (b, n) = (2, 256);
    let [re, im] = [1, 2].map(|seed| numbers::<f32>(b * n, seed));
    let (mut out_re, mut out_im) = (vec![0.0f64; b * n], vec![0.0f64; b * n]);
    for at in 0..b * n {
        for t in 0..n {
            let (sin, cos) = (-std::f64::consts::TAU * ((at % n * t) % n) as f64 / n as f64).sin_cos();
            let [x, y] = [&re, &im].map(|part| f64::from(part[at / n * n + t]));
            out_re[at] += x * cos - y * sin;
            out_im[at] += x * sin + y * cos;
        }
    }
    check_kernel!(fourier<N = 16>(
        input re: (re, [b, n]), input im: (im, [b, n]),
        output out_re: (vec![0f32; b * n], [b, n] => out_re, 1e-4),
        output out_im: (vec![0f32; b * n], [b, n] => out_im, 1e-4),
    ));
}

/// A product whose turns are shared evenly (stream-k): a block may have the end of a tile and the beginning of another.
#[tile_kernel(grid = [BLOCKS])]
fn shares<const BM: usize, const BN: usize, const BK: usize, const BLOCKS: usize>(
    a: &Tensor<f16, m, k>,
    b: &Tensor<f16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let c = c.atomic_view();
    let (turns, columns) = (a.tiles(1), b.tiles(1));
    let total = a.tiles(0) * columns * turns;
    let mut at = total * block_id(0) / BLOCKS;
    let end = total * (block_id(0) + 1) / BLOCKS;
    while at < end {
        let tile = at / turns;
        let (i, j) = (tile / columns, tile % columns);
        let last = ((tile + 1) * turns).min(end);
        let mut acc = Tile::zeros([BM, BN]);
        for turn in at..last {
            let p = turn % turns;
            acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
        }
        let row = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        c.fetch_add([row, column], acc, Relaxed, DeviceScope);
        at = last;
    }
}

#[test]
fn shares_of_a_product_add_up() {
    let (m, n, k) = (40, 50, 100);
    let (a, b) = (numbers::<f16>(m * k, 1), numbers::<f16>(k * n, 2));
    let element = |at: usize| (0..k).map(|p| a[at / n * k + p].to_f64() * b[p * n + at % n].to_f64()).sum();
    let c: Vec<f64> = (0..m * n).map(element).collect();
    check_kernel!(shares<BM = 16, BN = 32, BK = 16, BLOCKS = 5>(
        input a: (a, [m, k]), input b: (b, [k, n]), output c: (vec![0f32; m * n], [m, n] => c, 1e-5),
    ));
}

/// A sparse matrix times a vector: R rows at once, as far as the longest goes.
#[tile_kernel]
fn sparse<const R: usize, const W: usize>(
    values: &Tensor<f32, k>,
    columns: &Tensor<i32, k>,
    starts: &Tensor<i32, { m + 1 }>,
    x: &Tensor<f32, n>,
    y: &mut Tensor<f32, m>,
) {
    let mut y = y.partition_view_mut([R]);
    let [i] = y.index();
    let begin = starts.partition_view([R]).load_masked([i]).unsqueeze(1);
    let end = starts.shift(0, -1).partition_view([R]).load_masked([i]).unsqueeze(1);
    let longest = (end - begin).max(0).item();
    let mut sum = Tile::zeros([R, 1]);
    for p in (0..longest).step_by(W) {
        let at = begin + p + Tile::<i32, 2>::iota([1, W], 1);
        let at = select(at.lt(end), at, -1);
        sum += (values.gather([at]) * x.gather([columns.gather_or(-1, [at])])).sum(1);
    }
    y.store_masked(sum.squeeze(1));
}

#[test]
fn rows_of_a_sparse_matrix_are_of_any_length() {
    let (m, n) = (21, 30);
    let (mut starts, mut columns) = (vec![0i32], Vec::new());
    for i in 0..m {
        columns.extend((0..n).filter(|j| (i * 7 + j * 5) % 11 < i % 7).map(|j| j as i32));
        starts.push(columns.len() as i32);
    }
    let k = columns.len();
    let (values, x) = (numbers::<f32>(k, 1), numbers::<f32>(n, 2));
    let row = |i: usize| {
        let elements = starts[i] as usize..starts[i + 1] as usize;
        elements.map(|p| f64::from(values[p] * x[columns[p] as usize])).sum()
    };
    let y: Vec<f64> = (0..m).map(row).collect();
    check_kernel!(sparse<R = 8, W = 4>(
        input values: (values, [k]), input columns: (columns, [k]), input starts: (starts, [m + 1]),
        input x: (x, [n]), output y: (vec![0f32; m], [m] => y, 1e-6),
    ));
}

/// A sparse matrix of blocks of R × R times a vector, a row of blocks at once: where its blocks are, and which part of `x`
/// each multiplies, are numbers that every block of the grid reads.
#[tile_kernel]
fn sparse_blocks<const R: usize>(
    values: &Tensor<f64, k, R, R>,
    columns: &Tensor<u32, k>,
    starts: &Tensor<i32, { m + 1 }>,
    x: &Tensor<f64, n, R>,
    y: &mut Tensor<f64, m, R>,
) {
    let values = values.partition_view([1, R, R]);
    let x = x.partition_view([1, R]);
    let mut y = y.partition_view_mut([1, R]);
    let [i, _] = y.index();
    let mut sum = Tile::zeros([R, 1]);
    for p in starts.gather([i])..starts.gather([i + 1]) {
        let part = x.load_masked([columns.gather([p]) as usize, 0]);
        sum += (values.load_masked([p as usize, 0, 0]).reshape([R, R]) * part).sum(1);
    }
    y.store(sum.reshape([1, R]));
}

#[test]
fn blocks_of_a_sparse_matrix_are_found_by_numbers() {
    let (m, n, r) = (9, 7, 4);
    let (mut starts, mut columns) = (vec![0i32], Vec::new());
    for i in 0..m {
        columns.extend((0..n).filter(|j| (i * 5 + j * 3) % 7 < i % 4).map(|j| j as u32));
        starts.push(columns.len() as i32);
    }
    let k = columns.len();
    let (values, x) = (numbers::<f64>(k * r * r, 1), numbers::<f64>(n * r, 2));
    let element = |at: usize| {
        let (i, row) = (at / r, at % r);
        let blocks = starts[i] as usize..starts[i + 1] as usize;
        let terms = blocks.flat_map(|p| (0..r).map(move |q| (p, q)));
        terms.map(|(p, q)| values[(p * r + row) * r + q] * x[columns[p] as usize * r + q]).sum()
    };
    let y: Vec<f64> = (0..m * r).map(element).collect();
    check_kernel!(sparse_blocks<R = 4>(
        input values: (values, [k, r, r]), input columns: (columns, [k]), input starts: (starts, [m + 1]),
        input x: (x, [n, r]), output y: (vec![0f64; m * r], [m, r] => y, 1e-12),
    ));
}
