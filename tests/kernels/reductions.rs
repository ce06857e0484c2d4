//! Reductions within a tile and across tiles, with pads that don't disturb them.

use super::{Case, array, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// Softmax of each row; a row fits a tile.
#[tile_kernel]
fn softmax<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked_or(f32::NEG_INFINITY, y.index());
    let e = exp(x - x.max(1));
    y.store_masked(e / e.sum(1));
}

/// Mean, smallest and largest element of each row, over tiles of a row of any length.
#[tile_kernel]
fn row_statistics<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 3>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, 3]);
    let [i, _] = y.index();
    let mut total = Tile::zeros([BM, 1]);
    let mut smallest = Tile::full([BM, 1], f32::INFINITY);
    let mut largest = Tile::full([BM, 1], f32::NEG_INFINITY);
    for j in 0..x.tiles(1) {
        total += x.load_masked([i, j]).sum(1);
        smallest = min(smallest, x.load_masked_or(f32::INFINITY, [i, j]).min(1));
        largest = max(largest, x.load_masked_or(f32::NEG_INFINITY, [i, j]).max(1));
    }
    let column = Tile::<i32, 2>::iota([BM, 3], 1);
    let mean = total / n as f32;
    y.store_masked(select(column == 0, mean, select(column == 1, smallest, largest)));
}

/// Sums of columns, as a vector.
#[tile_kernel]
fn column_sums<const BM: usize, const BN: usize>(x: &Tensor<i32, m, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BN]);
    let [j] = y.index();
    let mut total = Tile::zeros([BN]);
    for i in 0..x.tiles(0) {
        total += x.load_masked([i, j]).sum(0).reshape([BN]);
    }
    y.store_masked(total);
}

#[test]
fn softmax_agrees_with_loops() {
    let (m, n) = (7, 21);
    let x = numbers::<f32>(m * n, 1);
    let mut expected = Vec::new();
    for row in widen(&x).chunks(n) {
        let e: Vec<f64> = row.iter().map(|x| x.exp()).collect();
        let sum: f64 = e.iter().sum();
        expected.extend(e.iter().map(|e| e / sum));
    }
    Case {
        ir: softmax::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(32))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * n], &[m, n])],
        output: 1,
        expected,
        // exp within 2 ulp, a sum of 21 terms, one division; results are below 1.
        tolerance: 1e-6,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            softmax::<4, 32>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn row_statistics_agree_with_loops() {
    let (m, n) = (5, 19);
    let x = numbers::<f32>(m * n, 2);
    let statistics = |row: &[f64]| {
        let smallest = row.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        [row.iter().sum::<f64>() / n as f64, smallest, largest]
    };
    Case {
        ir: row_statistics::ir(),
        bindings: &[("BM", Binding::Const(2)), ("BN", Binding::Const(8))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * 3], &[m, 3])],
        output: 1,
        expected: widen(&x).chunks(n).flat_map(statistics).collect(),
        // The sum is exact; the division rounds once.
        tolerance: 1e-7,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, 3])?;
            row_statistics::<2, 8>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn column_sums_agree_with_loops() {
    let (m, n) = (10, 9);
    let x: Vec<i32> = (0..m * n).map(|i| (i * i) as i32 - 50).collect();
    Case {
        ir: column_sums::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(4))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0i32; n], &[n])],
        output: 1,
        expected: (0..n).map(|j| (0..m).map(|i| f64::from(x[i * n + j])).sum()).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [n])?;
            column_sums::<4, 4>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// For each row: the product, the mean, and whether any and all elements are above 1.
#[tile_kernel]
fn row_verdicts<const BM: usize, const BN: usize>(x: &Tensor<f32, m, BN>, y: &mut Tensor<f32, m, 4>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, 4]);
    let [i, _] = y.index();
    let x = x.load_masked_or(1.0, [i, 0]);
    let above = x > 1.0;
    let column = Tile::<i32, 2>::iota([BM, 4], 1);
    let any = above.any(1).cast::<f32>();
    let all = above.all(1).cast::<f32>();
    let verdict = select(column == 2, any, all);
    y.store_masked(select(column == 0, x.prod(1), select(column == 1, x.mean(1), verdict)));
}

#[test]
fn row_verdicts_agree_with_loops() {
    // Rows above 1, below 1 and mixed; 40 columns take the vectorised path and its remainder.
    let (m, n) = (6, 40);
    let factor = |i: usize| match i / n % 3 {
        0 => 1.0 + (i % 5 + 1) as f32 / 64.0,
        1 => 1.0 - (i % 7 + 1) as f32 / 64.0,
        _ => 1.0 + (i % 9) as f32 / 64.0 - 4.0 / 64.0,
    };
    let x: Vec<f32> = (0..m * n).map(factor).collect();
    let mut expected = Vec::new();
    for row in widen(&x).chunks(n) {
        let above = |x: &f64| *x > 1.0;
        expected.push(row.iter().product());
        expected.push(row.iter().sum::<f64>() / n as f64);
        expected.push(f64::from(u8::from(row.iter().any(above))));
        expected.push(f64::from(u8::from(row.iter().all(above))));
    }
    Case {
        ir: row_verdicts::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(40))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * 4], &[m, 4])],
        output: 1,
        expected,
        // 40 factors, each product rounded to half an ulp.
        tolerance: 40.0 * 6e-8,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, 4])?;
            row_verdicts::<4, 40>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// For each row: where its largest and its smallest element are.
#[tile_kernel]
fn row_positions<const BM: usize, const BN: usize>(x: &Tensor<f32, m, BN>, y: &mut Tensor<i32, m, 2>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, 2]);
    let [i, _] = y.index();
    let x = x.load_masked([i, 0]);
    let column = Tile::<i32, 2>::iota([BM, 2], 1);
    y.store_masked(select(column == 0, x.argmax(1), x.argmin(1)));
}

#[test]
fn row_positions_agree_with_loops() {
    let (m, n) = (5, 37);
    let mut x = numbers::<f32>(m * n, 9);
    // The extremes of row 1 stand twice: the first place counts. Row 2 begins with NaN, row 3 is nothing else.
    for (place, value) in [(n + 3, 50.0), (n + 30, 50.0), (n + 8, -50.0), (n + 9, -50.0), (2 * n, f32::NAN)] {
        x[place] = value;
    }
    x[3 * n..4 * n].fill(f32::NAN);
    let mut expected = Vec::new();
    for row in x.chunks(n) {
        let first = |better: fn(f32, f32) -> bool| {
            let numbers = row.iter().enumerate().filter(|(_, x)| !x.is_nan());
            let best = numbers.reduce(|best, next| if better(*next.1, *best.1) { next } else { best });
            best.map_or(0.0, |(place, _)| place as f64)
        };
        expected.extend([first(|a, b| a > b), first(|a, b| a < b)]);
    }
    Case {
        ir: row_positions::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(37))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0i32; m * 2], &[m, 2])],
        output: 1,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, 2])?;
            row_positions::<4, 37>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}
