//! Conditions on extents: those of parameters are checked when an instance is made, those of run-time sizes at
//! launch.

use super::{Case, array, check_exact, devices};
use tile::ir::Binding;
use tile::prelude::*;

/// Needs whole tiles, in both directions.
#[tile_kernel(where(BM % 4 == 0 && BN < 100, m % BM == 0, n.div_ceil(BN) * BN == n, m - n < 50))]
fn whole<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile + 1.0);
}

#[test]
fn a_kernel_runs_where_its_conditions_hold() {
    let (m, n) = (8, 21);
    let x: Vec<f32> = (0..168).map(|i| i as f32).collect();
    Case {
        ir: whole::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(7))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * n], &[m, n])],
        output: 1,
        expected: x.iter().map(|&x| f64::from(x) + 1.0).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            whole::<4, 7>(&x, &mut y).launch()?;
            Ok(super::widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Two 4-bit numbers of a byte: half of an extent twice is the extent, because the condition says so.
#[tile_kernel(where(B % 2 == 0))]
fn unpacked<const B: usize>(x: &Tensor<u8, n>, y: &mut Tensor<u8, { 2 * n }>) {
    let x = x.partition_view([B / 2]);
    let mut y = y.partition_view_mut([B]);
    let pair = x.load_masked(y.index());
    y.store_masked(stack([pair & 15, pair >> 4], 1).reshape([B]));
}

/// A row and its halves exchanged, as rotary positions take them: halves joined are the extent again.
#[tile_kernel(where(D % 2 == 0))]
fn turned<const D: usize>(x: &Tensor<f32, m, D>, y: &mut Tensor<f32, m, D>) {
    let mut y = y.partition_view_mut([1, D]);
    let row = x.partition_view([1, D]).load(y.index());
    let [a, b] = row.split_even::<2>(1);
    y.store(row * 2.0 + cat([-b, a], 1));
}

#[test]
fn parts_of_an_extent_that_divides_are_that_extent() {
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let one = |i: usize| {
        let (row, column) = (i / 6 * 6, i % 6);
        let other = if column < 3 { -x[row + column + 3] } else { x[row + column - 3] };
        x[i] * 2.0 + other
    };
    check_exact!(turned<D = 6>(x: x, [2, 6]) -> f32, [2, 6] => (0..12).map(one).collect::<Vec<_>>());
}

#[test]
fn conditions_of_parameters_are_known_to_shapes() {
    let x: Vec<u8> = (0..7).map(|i| i * 37).collect();
    let n = x.len();
    Case {
        ir: unpacked::ir(),
        bindings: &[("B", Binding::Const(8))],
        arguments: vec![array(&x, &[n]), array(&vec![0u8; 2 * n], &[2 * n])],
        output: 1,
        expected: x.iter().flat_map(|&x| [f64::from(x % 16), f64::from(x / 16)]).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let mut y = Tensor::zeros(device, [2 * n])?;
            unpacked::<8>(&x, &mut y).launch()?;
            Ok(super::widen(&y.to_vec()?))
        },
    }
    .check();
}

/// The error of a launch with these tiles and this shape, which is the same on every device.
fn refusal<const BM: usize, const BN: usize>(shape: [usize; 2]) -> String {
    let message = |device: &Device| {
        let x = Tensor::<f32>::zeros(device, shape)?;
        let mut y = Tensor::zeros(device, shape)?;
        whole::<BM, BN>(&x, &mut y).launch()
    };
    let messages: Vec<String> = devices()
        .iter()
        .map(|(device, _)| message(device).expect_err("a condition is broken").to_string())
        .collect();
    assert!(messages.windows(2).all(|pair| pair[0] == pair[1]), "{messages:?}");
    messages[0].clone()
}

#[test]
fn conditions_of_sizes_are_checked_at_launch() {
    let message = refusal::<4, 7>([10, 21]);
    for part in ["`whole` needs `m % BM == 0`", "`m % 4 == 0`", "m = 10 (axis 0 of `x`)", "conditions.rs:9"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let message = refusal::<4, 7>([4, 20]);
    assert!(message.contains("`n.div_ceil(BN) * BN == n`") && message.contains("n = 20"), "{message}");
    let message = refusal::<4, 7>([84, 28]);
    assert!(message.contains("m = 84 (axis 0 of `x`), n = 28 (axis 1 of `x`)"), "{message}");
}

#[test]
fn conditions_of_parameters_are_checked_by_the_instance() {
    let message = refusal::<6, 7>([12, 21]);
    assert!(message.contains("`whole` needs `BM % 4 == 0`") && message.contains("but BM = 6"), "{message}");
    let message = refusal::<4, 128>([4, 128]);
    assert!(message.contains("`BN < 100`") && message.contains("but BN = 128"), "{message}");
}

/// Each tile and its neighbours, where there are any: unmasked loads that `if` guards.
#[tile_kernel]
fn neighbours<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let whole = n / B;
    let mut sum = Tile::zeros([B]);
    if i > 0 && i <= whole {
        sum += x.load([i - 1]);
    }
    if i + 1 < whole {
        sum += x.load([i + 1]);
    }
    let mut p = 0usize;
    while p < whole {
        sum += x.load([p]) * 100.0;
        p += 1;
    }
    if i >= whole {
        sum += 1.0;
    } else {
        sum += x.load([i]) * 0.5;
    }
    y.store_masked(sum);
}

#[test]
fn guards_keep_unmasked_loads_inside() {
    for n in [3, 8, 19] {
        let (tile, whole) = (4, n / 4);
        let x: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
        let at = |t: usize, k: usize| f64::from(x[t * tile + k]);
        let expected = (0..n).map(|e| {
            let (i, k) = (e / tile, e % tile);
            let before = if i > 0 { at(i - 1, k) } else { 0.0 };
            let after = if i + 1 < whole { at(i + 1, k) } else { 0.0 };
            let all: f64 = (0..whole).map(|p| at(p, k) * 100.0).sum();
            let own = if i >= whole { 1.0 } else { at(i, k) * 0.5 };
            before + after + all + own
        });
        Case {
            ir: neighbours::ir(),
            bindings: &[("B", Binding::Const(4))],
            arguments: vec![array(&x, &[n]), array(&vec![0f32; n], &[n])],
            output: 1,
            expected: expected.collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [n])?;
                let mut y = Tensor::zeros(device, [n])?;
                neighbours::<4>(&x, &mut y).launch()?;
                Ok(super::widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

/// `whole` without masks, because of its conditions.
#[tile_kernel(where(m % BM == 0, n % BN == 0, m >= 2 * BM))]
fn maskless<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [_, j] = y.index();
    let second = x.load([1, j]);
    y.store(x.load_masked(y.index()) + second);
}

#[test]
fn conditions_make_masks_and_checks_needless() {
    let bindings = [("BM".to_owned(), Binding::Const(4)), ("BN".to_owned(), Binding::Const(7))];
    let instance = tile::ir::specialize(&maskless::ir(), &bindings).unwrap();
    assert_eq!(instance.checks(), []);
    let optimized = tile::ir::text::print(&tile::ir::passes::optimize(instance));
    assert!(!optimized.contains("masked"), "{optimized}");
    let (m, n) = (12, 14);
    let x: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
    let second = |e: usize| x[(4 + e / n % 4) * n + e % n];
    Case {
        ir: maskless::ir(),
        bindings: &[("BM", Binding::Const(4)), ("BN", Binding::Const(7))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * n], &[m, n])],
        output: 1,
        expected: (0..m * n).map(|e| f64::from(x[e]) + f64::from(second(e))).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            maskless::<4, 7>(&x, &mut y).launch()?;
            Ok(super::widen(&y.to_vec()?))
        },
    }
    .check();
}

/// The tiles beside a block's own, those that are there: what is counted from below zero is a number like any other.
#[tile_kernel(where(n % B == 0))]
fn beside<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut sum = Tile::zeros([B]);
    for d in -1..=1 {
        let j = i as i64 + d;
        if j >= 0 && j < x.tiles(0) as i64 {
            sum += x.load([j as usize]);
        }
    }
    y.store(sum);
}

#[test]
fn conditions_bound_sums_with_numbers_below_zero() {
    let x: Vec<f32> = (0..12).map(|i| (i * i) as f32).collect();
    let at = |i: usize| x.get(i).copied().unwrap_or(0.0);
    let y: Vec<f32> = (0..12).map(|i| at(i) + at(i + 4) + at(i.wrapping_sub(4))).collect();
    check_exact!(beside<B = 4>(x: x, [12]) -> f32, [12] => y);
}

/// The row before, of the first one itself, and the one behind, of the last one itself.
#[tile_kernel]
fn rows_beside<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    let [i, _] = y.index();
    let before = x.load([i.max(1) - 1, 0]);
    let behind = x.load([(i + 1).min(m - 1), 0]);
    y.store_masked(before * 100.0 + behind);
}

#[test]
fn the_larger_of_an_index_and_a_number_is_bounded() {
    for m in 1..4 {
        let x: Vec<f32> = (0..m * 4).map(|i| i as f32).collect();
        let at = |i: usize, j: usize| x[i * 4 + j];
        let row = |i: usize| (0..4).map(move |j| (i, j));
        let y = (0..m).flat_map(row).map(|(i, j)| at(i.max(1) - 1, j) * 100.0 + at((i + 1).min(m - 1), j));
        check_exact!(rows_beside<B = 4>(x: &x, [m, 4]) -> f32, [m, 4] => y.collect::<Vec<f32>>());
    }
}

/// Halves of a row taken by their extents and put together again: each way to write the whole is the parameter itself.
#[tile_kernel(where(D % 2 == 0))]
fn rotated<const D: usize>(x: &Tensor<f32, m, D>, y: &mut Tensor<f32, m, D>) {
    let mut y = y.partition_view_mut([1, 2 * (D / 2)]);
    let row = x.partition_view([1, D]).load(y.index());
    let a = row.extract([0, 0], [1, D / 2]);
    let b = row.extract([0, D / 2], [1, D / 2]);
    let mut joined = Tile::zeros([1, D / 2 * 2]);
    joined = joined.insert([0, 0], -b).insert([0, D / 2], a);
    let padded = b.pad([(0, 0), (D / 2, 0)], 0.0);
    let both = stack([a, a], 1).reshape([1, 2 * (D / 2)]);
    y.store(row * 2.0 + joined + padded - both + cat([a, b], 1) + a.repeat([1, 2]));
}

#[test]
fn halves_put_together_are_the_whole_however_it_is_written() {
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let one = |i: usize| {
        let (row, column) = (i / 6 * 6, i % 6);
        let other = if column < 3 { -x[row + column + 3] } else { x[row + column - 3] };
        let padded = if column < 3 { 0.0 } else { x[i] };
        x[i] * 3.0 + other + padded
    };
    check_exact!(rotated<D = 6>(x: x, [2, 6]) -> f32, [2, 6] => (0..12).map(one).collect::<Vec<_>>());
}

/// Whole tiles of an extent cover it, by a parameter as by a number.
#[tile_kernel(where(N % BN == 0, BN > 0))]
fn covered<const N: usize, const BN: usize>(x: &Tensor<f32, N>, y: &mut Tensor<f32, N>) {
    let mut y = y.partition_view_mut([N.div_ceil(BN) * BN]);
    let row = x.partition_view([N]).load(y.index());
    y.store(row + Tile::full([N / BN * BN], 1.0) + row.extract([0], [BN]).repeat([N / BN]));
}

#[test]
fn whole_tiles_of_an_extent_are_the_extent() {
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let expected: Vec<f32> = (0..12).map(|i| x[i] + 1.0 + x[i % 4]).collect();
    check_exact!(covered<N = 12, BN = 4>(x: x, [12]) -> f32, [12] => expected);
}
