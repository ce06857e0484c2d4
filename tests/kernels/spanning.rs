//! Blocks that own all tiles of an output along some axes: what they carry from tile to tile, read again of what they
//! wrote, and multiply, against plain loops.

use super::whole::check_kernel;
use super::{devices, numbers};
use tile::kernel::SpanningViewMut;
use tile::prelude::*;

/// Sums of all elements up to each one, and from each one on, of rows that are longer than a tile.
#[tile_kernel]
fn running_sums<const B: usize>(
    x: &Tensor<i32, m, n>,
    up_to: &mut Tensor<i32, m, n>,
    from: &mut Tensor<i32, m, n>,
    totals: &mut Tensor<i32, m, 1>,
) {
    let x = x.partition_view([2, B]);
    let mut up_to = up_to.partition_view_mut([2, B]).spanning([1]);
    let mut from = from.partition_view_mut([2, B]).spanning([1]);
    let mut totals = totals.partition_view_mut([2, 1]);
    let [i, _] = totals.index();
    let mut sum = Tile::zeros([2, 1]);
    for j in 0..x.tiles(1) {
        let t = x.load_masked([i, j]);
        up_to.at([j]).store_masked(sum + t.cumsum(1));
        sum += t.sum(1);
    }
    totals.store_masked(sum);
    let mut after = Tile::zeros([2, 1]);
    for j in (0..x.tiles(1)).rev() {
        let t = x.load_masked([i, j]);
        from.at([j]).store_masked(after + t.cumsum_reverse(1));
        after += t.sum(1);
    }
}

/// The elements of some rows up to each one, added up by plain loops.
fn summed(x: &[i32], n: usize, backwards: bool) -> Vec<f64> {
    let mut sums = vec![0.0; x.len()];
    for row in 0..x.len() / n {
        let mut sum = 0.0;
        for k in 0..n {
            let at = row * n + if backwards { n - 1 - k } else { k };
            sum += f64::from(x[at]);
            sums[at] = sum;
        }
    }
    sums
}

#[test]
fn what_a_block_carries_goes_on_in_its_next_tile() {
    for (m, n) in [(3, 37), (4, 32), (1, 1), (2, 100)] {
        let x: Vec<i32> = (0..m * n).map(|i| (i * 7 % 23) as i32 - 11).collect();
        let (up_to, from) = (summed(&x, n, false), summed(&x, n, true));
        let totals: Vec<f64> = (0..m).map(|row| from[row * n]).collect();
        let none = vec![0i32; m * n];
        check_kernel!(running_sums<B = 8>(
            input x: (x, [m, n]),
            output up_to: (none, [m, n] => up_to, 0.0),
            output from: (none, [m, n] => from, 0.0),
            output totals: (vec![0i32; m], [m, 1] => totals, 0.0),
        ));
    }
}

/// Every tile is the one before, which the block wrote itself, turned around and added to its old content.
#[tile_kernel]
fn chained<const B: usize>(y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([1, B]).spanning([1]);
    for j in 1..y.tiles(1) {
        let before = y.at([j - 1]).load_masked();
        y.at([j]).store_masked(y.at([j]).load_masked() + before.flip(1));
    }
}

#[test]
fn a_block_reads_what_it_wrote() {
    const B: usize = 16;
    for (m, n) in [(3, 80), (2, 75), (1, 16), (2, 5)] {
        let start = numbers::<f32>(m * n, 5);
        let mut expected: Vec<f64> = start.iter().map(|&value| f64::from(value)).collect();
        for row in expected.chunks_mut(n) {
            for j in 1..n.div_ceil(B) {
                for k in 0..B.min(n - j * B) {
                    row[j * B + k] += row[(j - 1) * B + B - 1 - k];
                }
            }
        }
        check_kernel!(chained<B = 16>(output y: (start, [m, n] => expected, 0.0)));
    }
}

/// A band of a product's tiles, from the last one to the first: where each is stored is known when it is summed.
#[tile_kernel]
fn band<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]).spanning([1]);
    let [i, _] = c.index();
    for back in 0..c.tiles(1) {
        let mut sum = Tile::zeros([BM, BN]);
        for p in 0..a.tiles(1) {
            sum = mma(a.load_masked([i, p]), b.load_masked([p, c.tiles(1) - 1 - back]), sum);
        }
        let j = c.tiles(1) - 1 - back;
        c.at([j]).store_masked(sum);
    }
}

#[test]
fn a_block_multiplies_a_band_of_tiles() {
    for (m, n, k) in [(40, 100, 24), (64, 64, 32), (1, 33, 1), (70, 70, 0)] {
        let (a, b) = (numbers::<f32>(m * k, 1), numbers::<f32>(k * n, 2));
        let element = |i: usize, j: usize| {
            // The `sum` of nothing is −0.
            (0..k).fold(0.0, |sum, p| sum + f64::from(a[i * k + p]) * f64::from(b[p * n + j]))
        };
        let expected: Vec<f64> = (0..m * n).map(|at| element(at / n, at % n)).collect();
        let begin = vec![-1.0f32; m * n];
        check_kernel!(band<BM = 16, BN = 16, BK = 16>(
            input a: (a, [m, k]),
            input b: (b, [k, n]),
            output c: (begin, [m, n] => expected, 0.0),
        ));
    }
}

/// Two axes of three, of a moved tensor whose tiles leave gaps; tiles outside aren't there.
#[tile_kernel]
fn numbered(y: &mut Tensor<i32, a, b, c>) {
    let mut y = y.permute([2, 0, 1]).strided_view_mut([2, 1, 2], [3, 2, 2]).spanning([0, 2]);
    for i in 0..=y.tiles(0) {
        for j in 0..=y.tiles(2) {
            let mut tile = y.at([i, j]);
            let [p, q, r] = tile.index();
            tile.store_masked(tile.load_masked_or(-1) + (100 * p + 10 * q + r) as i32);
        }
    }
}

#[test]
fn several_axes_of_a_moved_tensor() {
    let (a, b, c) = (5, 7, 8);
    // Of the moved tensor [c, a, b] tile p covers 3p and 3p + 1, tile q only 2q, tile r 2r and 2r + 1.
    let element = |at: usize| {
        let (x, y, z) = (at / (b * c), at / c % b, at % c);
        let is_covered = z % 3 < 2 && x % 2 == 0;
        if is_covered { (1 + 100 * (z / 3) + 10 * (x / 2) + y / 2) as f64 } else { 1.0 }
    };
    let expected: Vec<f64> = (0..a * b * c).map(element).collect();
    check_kernel!(numbered<>(output y: (vec![1i32; a * b * c], [a, b, c] => expected, 0.0)));
}

/// A fixed number of blocks share bands of tiles.
#[tile_kernel]
fn shared_bands<const B: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
    most: &mut Tensor<f32, m, 1>,
) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]).spanning([1]);
    let mut most = most.partition_view_mut([1, 1]);
    for mut band in y.tiles_persistent(RowMajor) {
        let [i, _] = band.index();
        let mut seen = Tile::full([1, 1], f32::NEG_INFINITY);
        for j in 0..band.tiles(1) {
            let t = x.load_masked_or(f32::NEG_INFINITY, [i, j]);
            seen = max(seen, t.max(1));
            band.at([j]).store_masked(max(t, seen));
        }
        most.store_masked(seen);
    }
}

#[test]
fn blocks_share_bands_of_tiles() {
    let (m, n) = (11, 21);
    let x = numbers::<f32>(m * n, 9);
    let largest = |row: usize, columns: std::ops::Range<usize>| {
        x[row * n..][columns].iter().fold(f64::NEG_INFINITY, |most, &value| most.max(f64::from(value)))
    };
    // The largest of a row's tiles of 4 up to that of the element.
    let element = |at: usize| largest(at / n, 0..(at % n / 4 * 4 + 4).min(n));
    let tiles: Vec<f64> = (0..m * n).map(element).collect();
    let rows: Vec<f64> = (0..m).map(|row| largest(row, 0..n)).collect();
    check_kernel!(shared_bands<B = 4>(
        input x: (x, [m, n]),
        output y: (vec![0f32; m * n], [m, n] => tiles, 0.0),
        output most: (vec![0f32; m], [m, 1] => rows, 0.0),
    ));
}

/// The same number in every tile that the block has.
#[tile_fn]
fn filled(y: &mut SpanningViewMut<'_, i32, 2, 1>, number: i32) {
    for j in 0..y.tiles(1) {
        y.at([j]).store_masked(Tile::full([2, 2], number));
    }
}

#[tile_kernel]
fn numbers_of_blocks(y: &mut Tensor<i32, m, n>) {
    let mut y = y.partition_view_mut([2, 2]).spanning([1]);
    let [i, _] = y.index();
    filled(&mut y, i as i32);
}

#[test]
fn a_function_stores_through_a_view() {
    let expected: Vec<i32> = (0..35).map(|at| at / 7 / 2).collect();
    check_kernel!(numbers_of_blocks<>(output y: (vec![-1i32; 35], [5, 7] => expected, 0.0)));
}

/// Whole tiles alone.
#[tile_kernel]
fn doubled(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]).spanning([0]);
    for i in 0..n / 4 {
        y.at([i]).store(x.load([i]) * 2.0);
    }
    y.at([n / 8]).store(Tile::zeros([4]));
}

#[test]
fn a_store_without_a_mask_is_checked_at_the_launch() {
    for (device, label) in devices() {
        let launch = |n: usize| {
            let x = Tensor::from_slice(&device, &vec![3.0; n], [n])?;
            let mut y = Tensor::zeros(&device, [n])?;
            doubled(&x, &mut y).launch()?;
            y.to_vec()
        };
        assert_eq!(launch(9).unwrap(), [6.0, 6.0, 6.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0], "{label}");
        let error = launch(3).unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "kernel `doubled`, at tests/kernels/spanning.rs:228:5: `store` of `y`: tile 0 of axis 0 ends at element 4, \
             but the axis has 3 elements (n); use `store_masked`, which is defined for every index",
            "{label}"
        );
    }
}

#[test]
fn the_ir_names_the_tile_that_is_stored() {
    let ir = chained::ir().to_string();
    for line in [
        "%y_1 = partition %y [1, B] spanning [1] : mut partition<m x n x f32, [1, B] spanning [1]>",
        "load_masked %y_1[%j] pad",
        "store_masked %y_1[%j], %8",
    ] {
        assert!(ir.contains(line), "{line} isn't in\n{ir}");
    }
}

/// Products that a block stores, then reads again: as they are, by rows and across.
#[tile_kernel(where(n % 64 == 0))]
fn products_again(
    a: &Tensor<bf16, 64, 64>,
    b: &Tensor<bf16, 64, n>,
    y: &mut Tensor<f32, 64, n>,
    z: &mut Tensor<f32, 64, n>,
    w: &mut Tensor<f32, n, 64>,
) {
    let a = a.partition_view([64, 64]).load([0, 0]);
    let b = b.partition_view([64, 64]);
    let mut y = y.partition_view_mut([64, 64]).spanning([0, 1]);
    let mut z = z.partition_view_mut([64, 64]).spanning([0, 1]);
    let mut w = w.partition_view_mut([64, 64]).spanning([0, 1]);
    for j in 0..b.tiles(1) {
        y.at([0, j]).store(mma(a, b.load([0, j]), Tile::zeros([64, 64])));
    }
    for j in 0..y.tiles(1) {
        let t = y.at([0, j]).load();
        z.at([0, j]).store(t - t.max(1));
        w.at([j, 0]).store(mma(t.cast::<bf16>().t(), a, Tile::zeros([64, 64])));
        y.at([0, j]).store(t.t() + t);
        let u = y.at([0, j]).load();
        z.at([0, j]).store(z.at([0, j]).load() + u);
    }
}

#[test]
fn products_are_read_again_by_other_threads() {
    for (device, label) in devices() {
        let n = 128;
        let (a, b) = (numbers::<bf16>(64 * 64, 1), numbers::<bf16>(64 * n, 2));
        let run = |device: &Device| -> tile::Result<Vec<Vec<f32>>> {
            let a = Tensor::from_slice(device, &a, [64, 64])?;
            let b = Tensor::from_slice(device, &b, [64, n])?;
            let mut y = Tensor::zeros(device, [64, n])?;
            let mut z = Tensor::zeros(device, [64, n])?;
            let mut w = Tensor::zeros(device, [n, 64])?;
            products_again(&a, &b, &mut y, &mut z, &mut w).launch()?;
            Ok(vec![y.to_vec()?, z.to_vec()?, w.to_vec()?])
        };
        let (found, expected) = (run(&device).unwrap(), run(&Device::reference()).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            let expected: Vec<f64> = expected.iter().map(|&x| f64::from(x)).collect();
            super::compare(label, &super::widen(found), &expected, 1e-4);
        }
    }
}
