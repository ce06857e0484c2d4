//! Tiles of short rows that are turned: colours of pixels that become planes, columns that become lines, pairs that are taken
//! apart.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Planes of normalised colours. What is done to a colour has its number, not its place.
#[tile_kernel]
fn planes<const BM: usize, const BN: usize>(
    x: &Tensor<u8, m, n, 3>,
    alpha: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, 3, m, n>,
) {
    let mut y = y.partition_view_mut([3, BM, BN]);
    let [_, i, j] = y.index();
    let x = x.partition_view([BM, BN, 3]).load_masked([i, j, 0]).cast::<f32>();
    let mean = Tile::from_array([8.0f32, 16.0, 24.0]).reshape([1, 1, 3]);
    let alpha = alpha.partition_view([BM, BN]).load_masked([i, j]).unsqueeze(2);
    let colour = Tile::<f32, 3>::iota([BM, BN, 3], 2);
    y.store_masked(((x - mean) * alpha + colour).permute([2, 0, 1]));
}

#[test]
fn colours_become_planes() {
    for [m, n] in [[4, 64], [5, 70], [3, 7], [0, 64], [9, 130]] {
        let x: Vec<u8> = numbers::<f32>(m * n * 3, 1).iter().map(|x| (x.abs() * 100.0) as u8).collect();
        let alpha = numbers::<f32>(m * n, 2);
        let mut y = Vec::new();
        for (c, mean) in [8.0, 16.0, 24.0].into_iter().enumerate() {
            let plane = |p: usize| (f64::from(x[p * 3 + c]) - mean) * f64::from(alpha[p]) + c as f64;
            y.extend((0..m * n).map(plane));
        }
        check_kernel!(planes<BM = 4, BN = 64>(
            input x: (x, [m, n, 3]), input alpha: (alpha, [m, n]),
            output y: (vec![0f32; y.len()], [3, m, n] => y, 1e-5),
        ));
    }
}

/// Light on surfaces, whose normals are rows of three numbers, of which one has no third.
#[tile_kernel]
fn shade<const B: usize>(x: &Tensor<f32, n, k>, third: i32, light: f32, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B, 1]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let column = |j: usize| x.load_masked_or(9.0, [i, j]);
    let both = (column(0) * light - column(1)).squeeze(1);
    y.store_masked(both + column(third as usize).squeeze(1));
}

#[test]
fn columns_become_lines() {
    for (n, k, third) in [(64, 3, 2), (100, 3, 3), (33, 2, 2), (130, 40, 39), (0, 3, 2)] {
        let x = numbers::<f32>(n * k, 3);
        let at = |i: usize, j: usize| if j < k { f64::from(x[i * k + j]) } else { 9.0 };
        let y: Vec<f64> = (0..n).map(|i| at(i, 0) * 0.5 - at(i, 1) + at(i, third)).collect();
        check_kernel!(shade<B = 64>(
            input x: (x, [n, k]), number third: (third as i32), number light: (0.5f32),
            output y: (vec![0f32; n], [n] => y, 1e-6),
        ));
    }
}

/// Real and imaginary parts, each by itself, and as well their squares' sums, which go along the short rows.
#[tile_kernel]
fn parts<const B: usize>(x: &Tensor<f32, n, 2>, y: &mut Tensor<f32, 2, n>, squares: &mut Tensor<f32, 1, n>) {
    let mut y = y.partition_view_mut([2, B]);
    let mut squares = squares.partition_view_mut([1, B]);
    let [_, i] = squares.index();
    let x = x.partition_view([B, 2]).load_masked([i, 0]);
    y.store_masked(x.t());
    squares.store_masked((x * x).sum(1).t());
}

#[tile_kernel]
fn halves<const B: usize>(x: &Tensor<f32, n, 2>, y: &mut Tensor<f32, 2, n>) {
    let mut y = y.partition_view_mut([2, B]);
    let [_, i] = y.index();
    let x = x.partition_view([B, 2]).load_masked([i, 0]);
    y.store_masked((x * x - 1.0).t());
}

#[test]
fn pairs_are_taken_apart() {
    for n in [256, 100, 17, 0] {
        let x = numbers::<f32>(n * 2, 4);
        let of = |j: usize| x.chunks(2).map(move |pair| f64::from(pair[j]));
        let y: Vec<f64> = of(0).chain(of(1)).collect();
        let squares: Vec<f64> = of(0).zip(of(1)).map(|(a, b)| a * a + b * b).collect();
        let less: Vec<f64> = y.iter().map(|x| x * x - 1.0).collect();
        check_kernel!(parts<B = 64>(
            input x: (x, [n, 2]),
            output y: (vec![0f32; 2 * n], [2, n] => y, 0.0), output squares: (vec![0f32; n], [1, n] => squares, 1e-6),
        ));
        check_kernel!(halves<B = 64>(
            input x: (x, [n, 2]), output y: (vec![0f32; 2 * n], [2, n] => less, 1e-6),
        ));
    }
}

/// Colours by a factor each and by one of another image's pixel, beside how bright the pixel is. The images are as wide as they
/// are, and what they lack is 9.
#[tile_kernel]
fn toned<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, w, 3>,
    alpha: &Tensor<f32, h, n>,
    y: &mut Tensor<f32, m, n, 3>,
    bright: &mut Tensor<f32, m, n, 1>,
) {
    let mut y = y.partition_view_mut([BM, BN, 3]);
    let mut bright = bright.partition_view_mut([BM, BN, 1]);
    let [i, j, _] = y.index();
    let x = x.partition_view([BM, BN, 3]).load_masked_or(9.0, [i, j, 0]);
    let alpha = alpha.partition_view([BM, BN]).load_masked_or(9.0, [i, j]).unsqueeze(2);
    let factors = Tile::from_array([0.5f32, 1.0, 2.0]).reshape([1, 1, 3]);
    y.store_masked(x * factors + alpha);
    bright.store_masked((x * factors).sum(2) - alpha);
}

#[test]
fn rows_that_exist_and_rows_that_do_not_are_the_same_pixels() {
    for ([m, n], w, h) in
        [([4, 64], 64, 4), ([5, 70], 70, 5), ([6, 90], 33, 9), ([3, 40], 100, 2), ([9, 130], 131, 8)]
    {
        let (x, alpha) = (numbers::<f32>(m * w * 3, 5), numbers::<f32>(h * n, 6));
        let colour = |i: usize, j: usize, c: usize| {
            let x = if j < w { f64::from(x[(i * w + j) * 3 + c]) } else { 9.0 };
            x * [0.5, 1.0, 2.0][c]
        };
        let alpha_at = |i: usize, j: usize| if i < h { f64::from(alpha[i * n + j]) } else { 9.0 };
        let y: Vec<f64> = (0..m * n * 3)
            .map(|k| colour(k / 3 / n, k / 3 % n, k % 3) + alpha_at(k / 3 / n, k / 3 % n))
            .collect();
        let sum = |i: usize, j: usize| (0..3).map(|c| colour(i, j, c)).sum::<f64>() - alpha_at(i, j);
        let bright: Vec<f64> = (0..m * n).map(|k| sum(k / n, k % n)).collect();
        check_kernel!(toned<BM = 4, BN = 32>(
            input x: (x, [m, w, 3]), input alpha: (alpha, [h, n]),
            output y: (vec![0f32; y.len()], [m, n, 3] => y, 1e-5),
            output bright: (vec![0f32; bright.len()], [m, n, 1] => bright, 1e-5),
        ));
    }
}
