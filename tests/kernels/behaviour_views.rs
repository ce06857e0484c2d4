//! What views do at their edges: padded loads, clipped stores, tile counts, permuted and strided partitions. The expected
//! numbers are written out, or counted by plain loops.

use super::{Case, array, devices, numbers, widen};
use tile::ir::{Array, Binding, DType};
use tile::prelude::*;

pub(super) fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|i| i as f32).collect()
}

/// Tile `index` of x, padded.
#[tile_kernel]
fn padded(x: &Tensor<f32, n>, y: &mut Tensor<f32, k>, pad: f32, index: usize) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    y.store(x.load_masked_or(pad, [index]));
}

#[test]
fn case_01_padded_load() {
    for pad in [0.0, f32::NEG_INFINITY, f32::NAN, -0.0] {
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &ramp(10), [10]).unwrap();
            let mut y = Tensor::zeros(&device, [4]).unwrap();
            padded(&x, &mut y, pad, 2).launch().unwrap();
            let bits: Vec<u32> = y.to_vec().unwrap().into_iter().map(f32::to_bits).collect();
            // NaN is some NaN.
            let same = |found: u32, pad: f32| {
                found == pad.to_bits() || pad.is_nan() && f32::from_bits(found).is_nan()
            };
            assert_eq!(&bits[..2], [8.0f32.to_bits(), 9.0f32.to_bits()], "{label}");
            assert!(bits[2..].iter().all(|&found| same(found, pad)), "{label}: {bits:x?} for {pad}");
        }
    }
}

/// Ones into the first 10 elements.
#[tile_kernel]
fn clipped(y: &mut Tensor<f32, n>) {
    let mut y = y.shrink([(0, 10)]).partition_view_mut([4]);
    y.store_masked(Tile::ones([4]));
}

#[test]
fn case_02_clipped_store() {
    let expected: Vec<f64> = (0..12).map(|i| if i < 10 { 1.0 } else { -7.0 }).collect();
    Case {
        ir: clipped::ir(),
        bindings: &[],
        arguments: vec![array(&[-7.0f32; 12], &[12])],
        output: 0,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let mut y = Tensor::from_slice(device, &[-7.0f32; 12], [12])?;
            clipped(&mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// How many tiles x has, by axis.
#[tile_kernel]
fn counts<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<i64, 4>) {
    let strided = x.strided_view([BM, BN], [3, 5]);
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([4]);
    let at = Tile::<i64, 1>::iota([4], 0);
    let plain = select(at == 0, x.tiles(0) as i64, x.tiles(1) as i64);
    let apart = select(at == 2, strided.tiles(0) as i64, strided.tiles(1) as i64);
    y.store(select(at < 2, plain, apart));
}

#[test]
fn case_03_tile_count() {
    for ([m, n], expected) in
        [([100, 64], [4, 2, 34, 13]), ([64, 128], [2, 4, 22, 26]), ([0, 1], [0, 1, 0, 1])]
    {
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &vec![0.0f32; m * n], [m, n]).unwrap();
            let mut y = Tensor::zeros(&device, [4]).unwrap();
            counts::<32, 32>(&x, &mut y).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), expected, "{label}");
        }
    }
    // An output without elements: no block runs, and bounds that no block has aren't checked.
    for (device, _) in devices() {
        let x = Tensor::from_slice(&device, &ramp(10), [10]).unwrap();
        padded(&x, &mut Tensor::zeros(&device, [0]).unwrap(), 0.0, 0).launch().unwrap();
    }
}

#[test]
fn case_04_index_out_of_bounds() {
    for (device, label) in devices() {
        for index in [3, usize::MAX, i32::MAX as usize] {
            let x = Tensor::from_slice(&device, &ramp(10), [10]).unwrap();
            let mut y = Tensor::zeros(&device, [4]).unwrap();
            padded(&x, &mut y, 5.0, index).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), [5.0; 4], "{label}: {index}");
        }
    }
}

/// Tile `p` past the block's, which some launches have and some haven't.
#[tile_kernel]
fn ahead<const B: usize, const P: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, m>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store(x.load([i + P]));
}

#[test]
fn case_04_bounds_are_checked_before_anything_is_written() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &ramp(16), [16]).unwrap();
        let mut y = Tensor::from_slice(&device, &[-7.0; 12], [12]).unwrap();
        ahead::<4, 1>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), ramp(16)[4..], "{label}");
        let mut y = Tensor::from_slice(&device, &[-7.0; 12], [12]).unwrap();
        let error = ahead::<4, 2>(&x, &mut y).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "kernel `ahead`, at tests/kernels/behaviour_views.rs:113:13: `load` of `x`: tile 4 of axis 0 ends at element \
             20, but the axis has 16 elements (n); use `load_masked`, which is defined for every index",
            "{label}"
        );
        assert_eq!(y.to_vec().unwrap(), [-7.0; 12], "{label}");
        let mut y = Tensor::zeros(&device, [11]).unwrap();
        let error = ahead::<4, 1>(&x, &mut y).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "kernel `ahead`, at tests/kernels/behaviour_views.rs:113:5: `store` of `y`: tile 2 of axis 0 ends at element \
             12, but the axis has 11 elements (m); use `store_masked`, which is defined for every index",
            "{label}"
        );
    }
}

/// y = tile (i, j) of x.
#[tile_kernel]
fn tile_of<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, BM, BN>,
    i: usize,
    j: usize,
) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    y.store(x.load_masked([i, j]));
}

/// y = tile (i, j) of xᵀ.
#[tile_kernel]
fn permuted_tile<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, BM, BN>,
    i: usize,
    j: usize,
) {
    let x = x.permute([1, 0]).partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    y.store(x.load_masked([i, j]));
}

/// y = the tile that begins at (3·i, 4·j).
#[tile_kernel]
fn strided_tile<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, BM, BN>,
    i: usize,
    j: usize,
) {
    let x = x.strided_view([BM, BN], [3, 4]);
    let mut y = y.partition_view_mut([BM, BN]);
    y.store(x.load_masked([i, j]));
}

fn index(value: usize) -> Array {
    Array::scalar(DType::Index, tile::ir::ops::Literal::Int(value as i128))
}

#[test]
fn case_05_two_dimensional_partition() {
    Case {
        ir: tile_of::ir(),
        bindings: &[("BM", Binding::Const(2)), ("BN", Binding::Const(2))],
        arguments: vec![array(&ramp(32), &[4, 8]), array(&[0.0f32; 4], &[2, 2]), index(1), index(2)],
        output: 1,
        expected: vec![20.0, 21.0, 28.0, 29.0],
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &ramp(32), [4, 8])?;
            let mut y = Tensor::zeros(device, [2, 2])?;
            tile_of::<2, 2>(&x, &mut y, 1, 2).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn case_06_permuted_partition() {
    Case {
        ir: permuted_tile::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(2))],
        arguments: vec![array(&ramp(32), &[4, 8]), array(&[0.0f32; 8], &[4, 2]), index(1), index(0)],
        output: 1,
        expected: vec![4.0, 12.0, 5.0, 13.0, 6.0, 14.0, 7.0, 15.0],
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &ramp(32), [4, 8])?;
            let mut y = Tensor::zeros(device, [4, 2])?;
            permuted_tile::<4, 2>(&x, &mut y, 1, 0).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn case_07_strided_view() {
    Case {
        ir: strided_tile::ir(),
        bindings: &[("BM", Binding::Const(2)), ("BN", Binding::Const(2))],
        arguments: vec![array(&ramp(40), &[4, 10]), array(&[0.0f32; 4], &[2, 2]), index(0), index(1)],
        output: 1,
        expected: vec![4.0, 5.0, 14.0, 15.0],
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &ramp(40), [4, 10])?;
            let mut y = Tensor::zeros(device, [2, 2])?;
            strided_tile::<2, 2>(&x, &mut y, 0, 1).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Every window of 4, two apart.
#[tile_kernel]
fn windows(x: &Tensor<f32, n>, y: &mut Tensor<f32, k, 4>) {
    let x = x.strided_view([4], [2]);
    let mut y = y.partition_view_mut([1, 4]);
    let [i, _] = y.index();
    y.store(x.load_masked([i]).reshape([1, 4]));
}

#[test]
fn case_07_overlapping_windows() {
    let expected = [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7], [6, 7, 8, 9], [8, 9, 0, 0]];
    Case {
        ir: windows::ir(),
        bindings: &[],
        arguments: vec![array(&ramp(10), &[10]), array(&[-1.0f32; 20], &[5, 4])],
        output: 1,
        expected: expected.concat().into_iter().map(f64::from).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &ramp(10), [10])?;
            let mut y = Tensor::zeros(device, [5, 4])?;
            windows(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Rows in pairs, backwards, one column of each pair's members: reads and writes through several movements.
#[tile_kernel]
fn moved<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, n, m>, batch: usize) {
    let pairs = x.unflatten(0, [m / 2, 2]).select(1, batch).flip([0]);
    let wide = pairs.unsqueeze(1).squeeze(1).pad([(1, 0), (0, 1)]).shift(1, 1);
    let wide = wide.partition_view([B, B]);
    let mut y = y.t().flip([1]).step(0, 2).partition_view_mut([B, B]);
    y.store_masked(wide.load_masked_or(-1.0, y.index()));
}

#[test]
fn movements_compose_on_both_sides() {
    let (m, n) = (6, 5);
    let x = numbers::<f32>(m * n, 5);
    for batch in [0, 1, 2] {
        // In steps of plain loops: the batch's rows from the last, a row of −1 in front, a column of −1 in front
        // of each; what falls off the end is lost.
        let mut rows = vec![vec![-1.0f32; n + 1]];
        for pair in (0..m / 2).rev() {
            let row = |c: usize| if batch < 2 { x[(2 * pair + batch) * n + c] } else { -1.0 };
            rows.push(std::iter::once(-1.0).chain((0..n).map(row)).collect());
        }
        let mut expected = vec![9.0f32; n * m];
        for (i, r) in (0..m).step_by(2).enumerate() {
            for (j, c) in (0..n).rev().enumerate() {
                expected[c * m + r] = rows[i][j];
            }
        }
        Case {
            ir: moved::ir(),
            bindings: &[("B", Binding::Const(2))],
            arguments: vec![array(&x, &[m, n]), array(&vec![9.0f32; n * m], &[n, m]), index(batch)],
            output: 1,
            expected: widen(&expected),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [m, n])?;
                let mut y = Tensor::from_slice(device, &vec![9.0f32; n * m], [n, m])?;
                moved::<2>(&x, &mut y, batch).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

#[test]
fn what_a_view_needs_is_checked_at_the_launch() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &ramp(10), [5, 2]).unwrap();
        let mut y = Tensor::from_slice(&device, &[9.0f32; 10], [2, 5]).unwrap();
        let error = moved::<2>(&x, &mut y, 0).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "kernel `moved`, at tests/kernels/behaviour_views.rs:275:17: `unflatten` of axis 0 of `x`: it has 5 (m) \
             elements, the new axes 4 (2*(m / 2)); they must be equal",
            "{label}"
        );
        let mut y = Tensor::from_slice(&device, &[-7.0; 6], [6]).unwrap();
        let error = clipped(&mut y).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "kernel `clipped`, at tests/kernels/behaviour_views.rs:41:17: `shrink` of axis 0 of `y`: the range ends at \
             10, but the axis has 6 (n) elements",
            "{label}"
        );
        assert_eq!(y.to_vec().unwrap(), [-7.0; 6], "{label}");
    }
}

/// Differences of numbers that lie B apart: there are B fewer.
#[tile_kernel]
fn differences<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, { n - B }>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(x.load_masked([i + 1]) - x.load_masked([i]));
}

#[test]
fn an_extent_without_a_value_is_told_with_its_sizes() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &ramp(3), [3]).unwrap();
        let mut y = Tensor::zeros(&device, [1]).unwrap();
        let error = differences::<4>(&x, &mut y).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "axis 0 of `y` of kernel `differences` can't be computed: `n - 4` is negative (-1), where n = 3 (axis 0 of \
             `x`)",
            "{label}"
        );
    }
}

/// A banded product by windows of a row: y[i] = Σ w[j]·x[i + j].
#[tile_kernel]
fn correlate<const B: usize>(x: &Tensor<f64, n>, w: &Tensor<f64, 4>, y: &mut Tensor<f64, k>) {
    let x = x.unfold(0, 4, 1).partition_view([B, 4]);
    let w = w.unsqueeze(0).expand([n, 4]).partition_view([B, 4]);
    let mut y = y.unsqueeze(1).partition_view_mut([B, 1]);
    let [i, _] = y.index();
    y.store_masked((x.load_masked([i, 0]) * w.load_masked([i, 0])).sum(1));
}

#[test]
fn windows_and_repeated_rows() {
    let (x, w) = (numbers::<f64>(23, 3), numbers::<f64>(4, 4));
    let expected: Vec<f64> = (0..20).map(|i| (0..4).map(|j| w[j] * x[i + j]).sum()).collect();
    Case {
        ir: correlate::ir(),
        bindings: &[("B", Binding::Const(8))],
        arguments: vec![array(&x, &[23]), array(&w, &[4]), array(&[0.0f64; 20], &[20])],
        output: 2,
        expected,
        tolerance: 1e-12,
        run: &|device| {
            let (x, w) = (Tensor::from_slice(device, &x, [23])?, Tensor::from_slice(device, &w, [4])?);
            let mut y = Tensor::zeros(device, [20])?;
            correlate::<8>(&x, &w, &mut y).launch()?;
            y.to_vec()
        },
    }
    .check();
}

/// Tiles that are written three apart; `unsafe` vouches for the load.
#[tile_kernel]
fn spread(x: &Tensor<f32, n>, y: &mut Tensor<f32, k>) {
    let x = x.partition_view([2]);
    let mut y = y.strided_view_mut([2], [3]);
    let [i] = y.index();
    // SAFETY: the test passes two elements of x for every three of y.
    let tile = unsafe { x.load_unchecked([i]) };
    y.store_masked(tile);
}

#[test]
fn gaps_are_not_written() {
    let expected = vec![0.0, 1.0, -7.0, 2.0, 3.0, -7.0, 4.0, 5.0, -7.0, 6.0];
    Case {
        ir: spread::ir(),
        bindings: &[],
        arguments: vec![array(&ramp(8), &[8]), array(&[-7.0f32; 10], &[10])],
        output: 1,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &ramp(8), [8])?;
            let mut y = Tensor::from_slice(device, &[-7.0f32; 10], [10])?;
            spread(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Loops whose bounds say that every tile is inside, and remainders of data and blocks that do.
#[tile_kernel]
fn bounded<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>, row: usize) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, 1]);
    let [i, _] = y.index();
    let mut sum = Tile::zeros([1, B]);
    for p in 0..n / B {
        sum += x.load([i, p]);
    }
    for p in 1..n / B {
        sum += x.load([row % 2, p - 1]) + x.load([row % m, p - 1]) + x.load([(i + 1) % m, p - 1]);
    }
    y.store(sum.sum(1));
}

#[test]
fn loops_bound_their_tiles() {
    let (m, n, row) = (3, 14, 71);
    let x: Vec<f64> = (0..m * n).map(|i| (i * 7 % 11) as f64).collect();
    let x32: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let sum = |row: usize, end: usize| x[row * n..row * n + end].iter().sum::<f64>();
    let expected: Vec<f64> =
        (0..m).map(|i| sum(i, 12) + sum(1, 8) + sum(2, 8) + sum((i + 1) % m, 8)).collect();
    Case {
        ir: bounded::ir(),
        bindings: &[("B", Binding::Const(4))],
        arguments: vec![array(&x32, &[m, n]), array(&vec![0.0f32; m], &[m, 1]), index(row)],
        output: 1,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x32, [m, n])?;
            let mut y = Tensor::zeros(device, [m, 1])?;
            bounded::<4>(&x, &mut y, row).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn an_unchecked_load_outside_is_an_error_of_the_reference_device() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &ramp(5), [5]).unwrap();
    let mut y = Tensor::zeros(&device, [9]).unwrap();
    let error = spread(&x, &mut y).launch().unwrap_err().to_string();
    let reason = "`load_unchecked`: tile [2] isn't all inside; use `load_masked`";
    assert!(error.contains(reason), "{error}");
}
