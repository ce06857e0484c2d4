//! Outputs that are moved before they are cut into tiles, so that tiles lie across the rows of the tensor: what is stored, and
//! what the block reads of its own tile in between.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// The sizes, of which some are no multiple of a tile's, and one is empty.
const SIZES: [[usize; 2]; 5] = [[32, 64], [37, 50], [3, 70], [9, 0], [70, 5]];

/// The block's own tile is read between two stores of it, and the other output isn't moved.
#[tile_kernel]
fn twice<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, n, m>,
    before: &mut Tensor<f32, m, n>,
) {
    let mut y = y.t().partition_view_mut([BM, BN]);
    let mut before = before.partition_view_mut([BM, BN]);
    let x = x.partition_view([BM, BN]).load_masked(y.index());
    before.store_masked(y.load_masked());
    y.store_masked(y.load_masked() * 2.0 + x);
    y.store_masked(y.load_masked() - 1.0);
}

#[test]
fn a_moved_tile_is_read_and_written() {
    for [m, n] in SIZES {
        let (x, y) = (numbers::<f32>(m * n, 1), numbers::<f32>(m * n, 2));
        let before: Vec<f64> = (0..m * n).map(|k| f64::from(y[k % n * m + k / n])).collect();
        let after: Vec<f64> =
            (0..m * n).map(|k| f64::from(y[k]) * 2.0 + f64::from(x[k % m * n + k / m]) - 1.0).collect();
        check_kernel!(twice<BM = 16, BN = 32>(
            input x: (x, [m, n]), output y: (y, [n, m] => after, 1e-6),
            output before: (vec![0f32; m * n], [m, n] => before, 0.0),
        ));
    }
}

/// Columns' softmax, as rows of tensors that are both transposed, times a weight for each row.
#[tile_kernel]
fn columns<const B: usize, const W: usize>(
    x: &Tensor<f32, w, n>,
    weights: &Tensor<f32, n>,
    y: &mut Tensor<f32, w, n>,
) {
    let mut y = y.t().partition_view_mut([B, W]);
    let [i, _] = y.index();
    let x = x.t().partition_view([B, W]).load_masked_or(f32::NEG_INFINITY, [i, 0]);
    let e = exp(x - x.max(1));
    let weight = weights.partition_view([B]).load_masked([i]).unsqueeze(1);
    y.store_masked(e / e.sum(1) * weight);
}

#[test]
fn rows_of_transposed_tensors_are_reduced() {
    for [n, w] in [[32, 64], [37, 50], [3, 64], [70, 5]] {
        let (x, weights) = (numbers::<f32>(w * n, 3), numbers::<f32>(n, 4));
        let e = |k: usize| f64::from(x[k]).exp();
        let sums: Vec<f64> = (0..n).map(|i| (0..w).map(|j| e(j * n + i)).sum()).collect();
        let y: Vec<f64> = (0..w * n).map(|k| e(k) / sums[k % n] * f64::from(weights[k % n])).collect();
        check_kernel!(columns<B = 16, W = 64>(
            input x: (x, [w, n]), input weights: (weights, [n]), output y: (vec![0f32; w * n], [w, n] => y, 1e-5),
        ));
    }
}

/// A product is added to a transposed output.
#[tile_kernel]
fn product<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    c: &mut Tensor<f32, n, m>,
) {
    let mut c = c.t().partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let (a, b) = (a.partition_view([BM, BK]), b.partition_view([BK, BN]));
    let mut sum = c.load_masked();
    for l in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, l]), b.load_masked([l, j]), sum);
    }
    c.store_masked(sum);
}

#[test]
fn a_product_is_added_to_a_moved_output() {
    for [m, n, k] in [[32, 64, 32], [37, 50, 20], [70, 5, 33]] {
        let (a, b, c) = (numbers::<f32>(m * k, 5), numbers::<f32>(k * n, 6), numbers::<f32>(n * m, 7));
        let element = |p: usize| {
            let (j, i) = (p / m, p % m);
            f64::from(c[p]) + (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum::<f64>()
        };
        let sums: Vec<f64> = (0..n * m).map(element).collect();
        check_kernel!(product<BM = 32, BN = 32, BK = 16>(
            input a: (a, [m, k]), input b: (b, [k, n]), output c: (c, [n, m] => sums, 1e-4),
        ));
    }
}

/// Planes become pixels, and of two of them sums that are pairs. Blocks have all rows.
#[tile_kernel]
fn interleaved<const BM: usize, const BN: usize>(
    x: &Tensor<u8, 3, m, n>,
    y: &mut Tensor<u8, m, n, 3>,
    pairs: &mut Tensor<u8, m, n, 2>,
) {
    let mut y = y.permute([2, 0, 1]).partition_view_mut([3, BM, BN]).spanning([1]);
    let mut pairs = pairs.permute([2, 0, 1]).partition_view_mut([2, BM, BN]).spanning([1]);
    let [_, _, j] = y.index();
    let (colours, two) = (x.partition_view([3, BM, BN]), x.partition_view([2, BM, BN]));
    for i in 0..y.tiles(1) {
        let colour = colours.load_masked([0, i, j]);
        y.at([i]).store_masked(colour / 2);
        pairs.at([i]).store_masked(two.load_masked([0, i, j]).max(0) + Tile::<u8, 3>::iota([2, BM, BN], 0));
    }
}

#[test]
fn planes_become_pixels() {
    for [m, n] in SIZES {
        let x: Vec<u8> = numbers::<f32>(m * n * 3, 8).iter().map(|x| (x.abs() * 100.0) as u8).collect();
        let at = |c: usize, p: usize| x[c * m * n + p];
        let y: Vec<f64> = (0..m * n * 3).map(|k| f64::from(at(k % 3, k / 3) / 2)).collect();
        let greater = |p: usize| f64::from(at(0, p).max(at(1, p)));
        let pairs: Vec<f64> = (0..m * n * 2).map(|k| greater(k / 2) + (k % 2) as f64).collect();
        check_kernel!(interleaved<BM = 4, BN = 32>(
            input x: (x, [3, m, n]), output y: (vec![0u8; y.len()], [m, n, 3] => y, 0.0),
            output pairs: (vec![0u8; pairs.len()], [m, n, 2] => pairs, 0.0),
        ));
    }
}

/// Blocks share the tiles of a moved output, of heads of which each row is a place's.
#[tile_kernel]
fn heads<const H: usize, const B: usize>(x: &Tensor<i32, h, d, n>, y: &mut Tensor<i32, n, h, d>) {
    let mut y = y.permute([1, 2, 0]).partition_view_mut([H, 16, B]);
    for mut tile in y.tiles_persistent(Grouped(2)) {
        tile.store_masked(x.partition_view([H, 16, B]).load_masked(tile.index()));
    }
}

/// The same with what is read moved, so that rows of both lie along tensors'.
#[tile_kernel]
fn places<const H: usize, const B: usize>(x: &Tensor<i32, h, d, n>, y: &mut Tensor<i32, n, h, d>) {
    let mut y = y.partition_view_mut([B, H, 16]);
    y.store_masked(x.permute([2, 0, 1]).partition_view([B, H, 16]).load_masked(y.index()));
}

#[test]
fn heads_become_places() {
    for [h, d, n] in [[2, 16, 64], [3, 16, 37], [5, 20, 70]] {
        let x: Vec<i32> = (0..h * d * n).map(|k| (k * 37 % 101) as i32).collect();
        let at = |k: usize| f64::from(x[k % (h * d) * n + k / (h * d)]);
        let y: Vec<f64> = (0..n * h * d).map(at).collect();
        check_kernel!(heads<H = 1, B = 32>(
            input x: (x.clone(), [h, d, n]), output y: (vec![0i32; y.len()], [n, h, d] => y.clone(), 0.0),
        ));
        check_kernel!(heads<H = 2, B = 32>(
            input x: (x.clone(), [h, d, n]), output y: (vec![0i32; y.len()], [n, h, d] => y.clone(), 0.0),
        ));
        check_kernel!(places<H = 2, B = 32>(
            input x: (x, [h, d, n]), output y: (vec![0i32; y.len()], [n, h, d] => y, 0.0),
        ));
    }
}
