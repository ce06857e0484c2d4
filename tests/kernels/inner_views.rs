//! Views that are made in loops and branches: what they see is what the same view sees at the top of the kernel.

use super::{Case, array, check_exact, devices, widen};
use tile::ir::ops::Literal;
use tile::ir::{Array, Binding, DType};
use tile::prelude::*;

/// Every turn cuts the output, and every branch another view of x; the turns of the last loop are unrolled.
#[tile_kernel]
fn turns<const B: usize>(x: &Tensor<i32, n, n>, y: &mut Tensor<i32, n, n>) {
    for p in 0..n {
        let mut y = y.t().partition_view_mut([B, B]);
        if p % 2 == 0 {
            let x = x.t().shift(1, 1).partition_view([B, B]);
            y.store_masked(y.load_masked() + x.load_masked_or(100, y.index()));
        } else {
            let x = x.flip([0]).partition_view([B, B]).latency(2);
            y.store_masked(y.load_masked() - x.load_masked(y.index()));
        }
    }
    let scales = [2, 3];
    for k in 0..2 {
        let mut y = y.t().partition_view_mut([B, B]);
        let [row, _] = y.index();
        match row {
            0 => y.store_masked(y.load_masked() * scales[k]),
            _ => {
                let again = x.step(0, 2).partition_view([B, B]);
                y.store_masked(y.load_masked() + again.load_masked(y.index()));
            }
        }
    }
}

#[test]
fn turns_and_branches_make_views() {
    let n = 5;
    let x: Vec<i32> = (0..25).map(|i| i * 3 % 7).collect();
    let at = |row: usize, column: usize| x[row * n + column];
    // y is written through its transpose. Three turns are even and two odd.
    let expected = (0..n * n).map(|k| {
        let (j, i) = (k / n, k % n);
        let shifted = if j == 0 { 100 } else { at(j - 1, i) };
        let sum = 3 * shifted - 2 * at(n - 1 - i, j);
        let stepped = if 2 * i < n { at(2 * i, j) } else { 0 };
        if i < 2 { 6 * sum } else { sum + 2 * stepped }
    });
    check_exact!(turns<B = 2>(x: x.clone(), [n, n]) -> i32, [n, n] => expected);
}

/// A row is selected at an index from before the loop, where a `return` has left the rest of the kernel in a branch.
#[tile_kernel]
fn selected<const B: usize>(x: &Tensor<f32, b, n>, y: &mut Tensor<f32, b, n>, skipped: usize) {
    let mut y = y.partition_view_mut([1, B]);
    let [row, _] = y.index();
    if row == skipped {
        return;
    }
    let mut sum = Tile::<f32, 1>::zeros([B]);
    for k in 0..2 {
        let own = x.select(0, row).partition_view([B]);
        let first = x.select(0, 0).partition_view([B]);
        sum += own.load_masked([k]) + first.load_masked([k]);
    }
    y.store_masked(sum.reshape([1, B]));
}

#[test]
fn an_index_from_before_the_loop_is_selected() {
    let (b, n) = (3, 4);
    let x: Vec<f32> = (0..b * n).map(|i| (i * i) as f32).collect();
    // Each row has two tiles of 2, and every block of a row writes the same sums to its own.
    let expected = (0..b * n).map(|k| {
        let (row, column) = (k / n, k % 2);
        let pair = |row: usize| x[row * n + column] + x[row * n + column + 2];
        if row == 1 { -7.0 } else { f64::from(pair(row) + pair(0)) }
    });
    let skipped = Array::scalar(DType::Index, Literal::Int(1));
    Case {
        ir: selected::ir(),
        bindings: &[("B", Binding::Const(2))],
        arguments: vec![array(&x, &[b, n]), array(&vec![-7.0f32; b * n], &[b, n]), skipped],
        output: 1,
        expected: expected.collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [b, n])?;
            let mut y = Tensor::from_slice(device, &vec![-7.0f32; b * n], [b, n])?;
            selected::<2>(&x, &mut y, 1).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// An output is cut at a literal index in two branches, and in a loop that is unrolled: each a view of its own in the text.
#[tile_kernel]
fn selected_output(x: &Tensor<i32, 3, n>, y: &mut Tensor<i32, 2, n>, other: i32) {
    if other > 0 {
        let mut y = y.select(0, 1).partition_view_mut([4]);
        y.store_masked(x.select(0, 0).partition_view([4]).load_masked(y.index()));
    } else {
        let mut y = y.select(0, 1).partition_view_mut([4]);
        y.store_masked(Tile::full([4], 7));
    }
    for k in 0..3 {
        let mut y = y.select(0, 1).partition_view_mut([4]);
        let x = x.select(0, k).partition_view([4]);
        y.store_masked(y.load_masked() * 10 + x.load_masked(y.index()));
    }
}

#[test]
fn an_output_is_selected_wherever_it_is_cut() {
    let n = 6;
    let x: Vec<i32> = (0..3 * n).map(|i| i as i32 % 10).collect();
    for other in [0, 1] {
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &x, [3, n]).unwrap();
            let mut y = Tensor::zeros(&device, [2, n]).unwrap();
            selected_output(&x, &mut y, other).launch().unwrap();
            let at = |k: usize, i: usize| (k * n + i) as i32 % 10;
            let row = (0..n).map(|i| {
                let first = if other > 0 { at(0, i) } else { 7 };
                (0..3).fold(first, |sum, k| sum * 10 + at(k, i))
            });
            let expected: Vec<i32> = std::iter::repeat_n(0, n).chain(row).collect();
            assert_eq!(y.to_vec().unwrap(), expected, "{label}");
        }
    }
}

/// A product goes into a matrix of a stack that is found behind the loop, and into one of its own.
#[tile_kernel]
fn product_twice(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    z: &mut Tensor<f32, m, n>,
    y: &mut Tensor<f32, 2, m, n>,
) {
    let (a, b) = (a.partition_view([16, 16]), b.partition_view([16, 16]));
    let mut z = z.partition_view_mut([16, 16]);
    let [i, j] = z.index();
    let mut sum = Tile::zeros([16, 16]);
    for p in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, p]), b.load_masked([p, j]), sum);
    }
    z.store_masked(sum);
    let mut y = y.select(0, i % 2).partition_view_mut([16, 16]);
    y.store_masked(sum);
}

#[test]
fn a_matrix_that_is_found_behind_a_product_is_selected() {
    let (m, k, n) = (40, 20, 24);
    let number = |i: usize| ((i * 7) % 5) as f32 - 2.0;
    let [a, b]: [Vec<f32>; 2] = [m * k, k * n].map(|count| (0..count).map(number).collect());
    let at = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
    for (device, label) in devices() {
        let a = Tensor::from_slice(&device, &a, [m, k]).unwrap();
        let b = Tensor::from_slice(&device, &b, [k, n]).unwrap();
        let (mut z, mut y) =
            (Tensor::zeros(&device, [m, n]).unwrap(), Tensor::zeros(&device, [2, m, n]).unwrap());
        product_twice(&a, &b, &mut z, &mut y).launch().unwrap();
        let (z, y) = (z.to_vec().unwrap(), y.to_vec().unwrap());
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let which = i / 16 % 2;
            assert_eq!(z[i * n + j], at(i, j), "{label}: {i}, {j}");
            assert_eq!(y[(which * m + i) * n + j], at(i, j), "{label}: {i}, {j}");
            assert_eq!(y[((1 - which) * m + i) * n + j], 0.0, "{label}: {i}, {j}");
        }
    }
}

/// A matrix of a stack as one axis, and windows of that; of a matrix beyond the stack nothing exists.
#[tile_kernel]
fn flat(x: &Tensor<f32, b, m, k>, at: usize, y: &mut Tensor<f32, { m * k }>) {
    let row = x.select(0, at).flatten(0, 1);
    let windows = row.pad([(0, 2)]).unfold(0, 3, 1).partition_view([4, 3]);
    let inner = x.select(0, at).flatten(0, 1).unfold(0, 2, 1).partition_view([4, 2]);
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let sums = windows.load_masked_or(0.5, [i, 0]).sum(1) + inner.load_masked([i, 0]).sum(1) * 100.0;
    y.store_masked(sums.squeeze(1) + row.partition_view([4]).load_masked([i]) * 1000.0);
}

#[test]
fn what_is_selected_is_flattened_and_unfolded() {
    let (b, m, k) = (2, 2, 3);
    let x: Vec<f32> = (0..b * m * k).map(|i| i as f32).collect();
    for at in 0..3 {
        let element = |i: usize| (at < b && i < m * k).then(|| x[at * m * k + i]);
        let expected: Vec<f64> = (0..m * k)
            .map(|i| {
                let window: f32 = (i..i + 3).map(|i| element(i).unwrap_or(0.5)).sum();
                let inner: f32 = match i + 1 < m * k {
                    true => (i..i + 2).filter_map(element).sum(),
                    false => 0.0,
                };
                f64::from(window + inner * 100.0 + element(i).unwrap_or(0.0) * 1000.0)
            })
            .collect();
        Case {
            ir: flat::ir(),
            bindings: &[],
            arguments: vec![
                array(&x, &[b, m, k]),
                Array::scalar(DType::Index, Literal::Int(at as i128)),
                array(&vec![0.0f32; m * k], &[m * k]),
            ],
            output: 2,
            expected,
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [b, m, k])?;
                let mut y = Tensor::<f32>::zeros(device, [m * k])?;
                flat(&x, at, &mut y).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

/// The counters of loops with literal ends say where a tensor goes, in every turn elsewhere.
#[tile_kernel]
fn counted<const B: usize>(x: &Tensor<f32, 3, n>, y: &mut Tensor<f32, { n - 2 }>) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for c in (0..3).rev() {
        for tap in 0..=2 {
            let row = x.select(0, c).shrink([(tap, n - 2 + tap)]).partition_view([B]);
            sum = sum * 2.0 + row.load_masked(y.index()) * (c + 1) as f32;
        }
    }
    y.store_masked(sum);
}

#[test]
fn counters_of_literal_ends_move_tensors() {
    let n = 7;
    let x: Vec<f32> = (0..3 * n).map(|i| (i * 5 % 11) as f32).collect();
    let at = |c: usize, i: usize| f64::from(x[c * n + i]);
    let turns = (0..3).rev().flat_map(|c| (0..=2).map(move |tap| (c, tap)));
    let expected = (0..n - 2)
        .map(|i| turns.clone().fold(0.0, |sum, (c, tap)| sum * 2.0 + at(c, i + tap) * (c + 1) as f64));
    check_exact!(counted<B = 4>(x: x.clone(), [3, 7]) -> f32, [5] => expected.map(|sum| sum as f32));
}

/// The tiles of a persistent kernel are computed from views that are made for each.
#[tile_kernel]
fn shared<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    for mut tile in y.tiles_persistent(RowMajor) {
        let x = x.pad([(1, 0)]).partition_view([B]);
        tile.store_masked(x.load_masked_or(9.0, tile.index()));
    }
}

#[test]
fn loops_over_tiles_make_views() {
    let x: Vec<f32> = (0..11).map(|i| i as f32).collect();
    let expected = (0..11).map(|i| if i == 0 { 9.0 } else { (i - 1) as f32 });
    check_exact!(shared<B = 4>(x: x.clone(), [11]) -> f32, [11] => expected);
}

/// A convolution whose windows lie 2 apart and reach into the margin: a view for each element of a window.
#[tile_kernel]
fn convolved<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, { n.div_ceil(2) }>) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for (tap, weight) in [(0, 1), (1, 10), (2, 100)] {
        let x = x.pad([(1, 1)]).shrink([(tap, n + tap)]).step(0, 2).partition_view([B]);
        sum += x.load_masked(y.index()) * weight;
    }
    y.store_masked(sum);
}

#[test]
fn windows_over_a_margin_are_a_view_for_each_tap() {
    for n in [11, 12] {
        let x: Vec<i32> = (0..n).map(|i| i * 5 % 8).collect();
        let at = |i: i32| if i < 0 || i >= n { 0 } else { x[i as usize] };
        let expected = (0..(n + 1) / 2).map(|i| at(2 * i - 1) + 10 * at(2 * i) + 100 * at(2 * i + 1));
        let outputs = (n as usize).div_ceil(2);
        check_exact!(convolved<B = 4>(x: x.clone(), [n as usize]) -> i32, [outputs] => expected);
    }
}
