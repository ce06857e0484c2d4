//! Elements moved within tiles by known and by looked-up positions.

use super::whole::check_kernel;
use super::{Case, array, check_exact, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// Rotary embedding: the halves of each row turned into each other.
#[tile_kernel]
fn rotate<const B: usize, const HALF: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([B, 2 * HALF]);
    let mut y = y.partition_view_mut([B, 2 * HALF]);
    let [first, second] = x.load_masked(y.index()).split_even(1);
    y.store_masked((-second).cat(first, 1));
}

#[test]
fn halves_of_rows_are_turned() {
    let (m, n) = (5, 6);
    let x = numbers::<f32>(m * n, 1);
    let turned = |i: usize| {
        let (row, column) = (i / n, i % n);
        if column < n / 2 { -x[row * n + column + n / 2] } else { x[row * n + column - n / 2] }
    };
    Case {
        ir: rotate::ir(),
        bindings: &[("B", Binding::Const(2)), ("HALF", Binding::Const(3))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * n], &[m, n])],
        output: 1,
        expected: (0..m * n).map(|i| f64::from(turned(i))).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            rotate::<2, 3>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Every movement once, on tiles whose extents are no powers of two.
#[tile_kernel]
fn everything<const N: usize>(x: &Tensor<i32, N>, y: &mut Tensor<i32, 2, { 3 * N + 3 }>) {
    let x = x.partition_view([N]);
    let mut y = y.partition_view_mut([2, 3 * N + 3]);
    let x = x.load_masked([0]);
    let turned = x.flip(0).roll(0, -2);
    let moved = x.shift(0, N - 1, 9).pad([(1, 2)], -1);
    let row =
        cat([turned, moved, x.extract([1], [N - 1]).insert([0], Tile::full([1], 5)), Tile::ones([1])], 0);
    let rows = stack([row, row.unsqueeze(0).repeat([1, 1]).squeeze(0) + 100], 0);
    y.store_masked(rows);
}

#[test]
fn every_movement_in_one_kernel() {
    const N: usize = 5;
    let x: Vec<i32> = (0..N as i32).map(|i| i * i + 1).collect();
    let n = N as i32;
    let mut row: Vec<i32> = (0..n).map(|i| x[(n - 1 - (i + 2) % n) as usize]).collect();
    row.extend([-1, 9, 9, 9, 9, x[0], -1, -1]);
    row.extend([5, x[2], x[3], x[4], 1]);
    let expected: Vec<i32> = row.iter().copied().chain(row.iter().map(|v| v + 100)).collect();
    let shape = [2, 3 * N + 3];
    assert_eq!(expected.len(), shape[0] * shape[1]);
    Case {
        ir: everything::ir(),
        bindings: &[("N", Binding::Const(N))],
        arguments: vec![array(&x, &[N]), array(&vec![0i32; expected.len()], &shape)],
        output: 1,
        expected: widen(&expected),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [N])?;
            let mut y = Tensor::zeros(device, shape)?;
            everything::<N>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// A table looked up, its rows counted, and one column taken at a run-time position.
#[tile_kernel]
fn looked_up<T: Number, const M: usize, const N: usize>(
    table: &Tensor<T, M, N>,
    indices: &Tensor<i64, m, N>,
    at: usize,
    y: &mut Tensor<T, m, N>,
) {
    let table = table.partition_view([M, N]);
    let indices = indices.partition_view([3, N]);
    let mut y = y.partition_view_mut([3, N]);
    let table = table.load_masked([0, 0]);
    let indices = indices.load_masked(y.index());
    let found = table.gather(indices, 0) + table.gather_or(T::of(2.0), indices - 1, 0);
    let counts = Tile::zeros([M, N]).scatter_add(indices, Tile::ones([3, N]), 0);
    let last = Tile::zeros([M, N]).scatter(indices, found, 0);
    y.store_masked(found * counts.gather(indices, 0) + last.sum(0) + table.take(at, 1).sum(0));
}

#[test]
fn tables_are_looked_up_and_counted() {
    const M: usize = 4;
    const N: usize = 6;
    let (m, at) = (3, 2);
    let table: Vec<i32> = (0..(M * N) as i32).map(|i| i * 3 % 17 - 8).collect();
    let indices: Vec<i64> = (0..(m * N) as i64).map(|i| i * i % 7 - 1).collect();
    let look =
        |k: i64, j: usize, fill| if (0..M as i64).contains(&k) { table[k as usize * N + j] } else { fill };
    let mut expected = vec![0; m * N];
    for j in 0..N {
        let (mut counts, mut last) = ([0; M], [0; M]);
        let found = |i: usize| look(indices[i * N + j], j, 0) + look(indices[i * N + j] - 1, j, 2);
        for i in 0..m {
            if let Some(k) = usize::try_from(indices[i * N + j]).ok().filter(|&k| k < M) {
                counts[k] += 1;
                last[k] = found(i);
            }
        }
        for i in 0..m {
            let count =
                usize::try_from(indices[i * N + j]).ok().and_then(|k| counts.get(k)).copied().unwrap_or(0);
            let column: i32 = (0..M).map(|k| table[k * N + at]).sum();
            expected[i * N + j] = found(i) * count + last.iter().sum::<i32>() + column;
        }
    }
    Case {
        ir: looked_up::ir(),
        bindings: &[
            ("T", Binding::Elem(tile::ir::DType::I32)),
            ("M", Binding::Const(M)),
            ("N", Binding::Const(N)),
        ],
        arguments: vec![
            array(&table, &[M, N]),
            array(&indices, &[m, N]),
            tile::ir::Array::scalar(tile::ir::DType::Index, tile::ir::ops::Literal::Int(at as i128)),
            array(&vec![0i32; m * N], &[m, N]),
        ],
        output: 3,
        expected: widen(&expected),
        tolerance: 0.0,
        run: &|device| {
            let table = Tensor::from_slice(device, &table, [M, N])?;
            let indices = Tensor::from_slice(device, &indices, [m, N])?;
            let mut y = Tensor::zeros(device, [m, N])?;
            looked_up::<i32, M, N>(&table, &indices, at, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// A range, the identity and high halves of products.
#[tile_kernel]
fn constructed<const N: usize>(y: &mut Tensor<f32, N, N>) {
    let mut y = y.partition_view_mut([N, N]);
    let range = Tile::arange([N], -1.0, 0.1);
    let high = Tile::<u32, 1>::arange([N], 4_000_000_000, 7).mul_hi(16).cast();
    y.store_masked(Tile::eye([N, N]) * 100.0 + (range + high).unsqueeze(1));
}

#[test]
fn ranges_and_the_identity() {
    const N: usize = 7;
    let mut expected = vec![0f32; N * N];
    for i in 0..N {
        let high = (((4_000_000_000u64 + 7 * i as u64) * 16) >> 32) as f32;
        for j in 0..N {
            let identity = if i == j { 100.0 } else { 0.0 };
            expected[i * N + j] = identity + ((-1.0 + i as f32 * 0.1) + high);
        }
    }
    Case {
        ir: constructed::ir(),
        bindings: &[("N", Binding::Const(N))],
        arguments: vec![array(&[0f32; N * N], &[N, N])],
        output: 0,
        expected: widen(&expected),
        tolerance: 0.0,
        run: &|device| {
            let mut y = Tensor::zeros(device, [N, N])?;
            constructed::<N>(&mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// By a const parameter in both directions, written out and by a name.
#[tile_kernel]
fn both_ways<const R: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([8]);
    let t = x.partition_view([8]).load_masked(y.index());
    let back = -(R as i32);
    let moved = t.shift(0, R, 0.0) + t.shift(0, -(R as i32), 0.0) + t.shift(0, back - 1, 100.0);
    y.store_masked(moved + t.roll(0, -(R as i64 - 1) as i32));
}

#[test]
fn parameters_move_elements_to_lower_positions() {
    let x: [f32; 8] = std::array::from_fn(|i| (i * i) as f32);
    let at = |i: i32, beyond: f32| usize::try_from(i).ok().and_then(|i| x.get(i)).copied().unwrap_or(beyond);
    let one = |i: i32| at(i - 2, 0.0) + at(i + 2, 0.0) + at(i + 3, 100.0) + at((i + 1) % 8, 0.0);
    check_exact!(both_ways<R = 2>(x: x, [8]) -> f32, [8] => (0..8).map(one).collect::<Vec<f32>>());
}

/// By a logarithm and a product of const parameters.
#[tile_kernel]
fn by_what_is_computed<const R: usize, const N: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([8]);
    let t = x.partition_view([8]).load_masked(y.index());
    y.store_masked(t.shift(0, -(N.ilog2() as i32), 0.0) + t.roll(0, 2 * -(R as i32)));
}

#[test]
fn what_is_computed_of_parameters_moves_elements() {
    let x: [f32; 8] = std::array::from_fn(|i| (i * i) as f32);
    let one = |i: usize| x.get(i + 3).copied().unwrap_or(0.0) + x[(i + 2) % 8];
    check_exact!(by_what_is_computed<R = 1, N = 10>(x: x, [8]) -> f32, [8] => (0..8).map(one).collect::<Vec<f32>>());
}

/// Where it begins and how far it goes are numbers of the function's own.
#[tile_fn]
fn counted_on<T: Int>(t: Tile<T, 1>) -> Tile<T, 1> {
    t + Tile::<T, 1>::arange([8], 1, 2)
}

#[tile_kernel]
fn counted<const N: usize>(x: &Tensor<i16, n>, y: &mut Tensor<i64, n>) {
    let mut y = y.partition_view_mut([8]);
    let t = x.partition_view([8]).load_masked(y.index());
    y.store_masked(counted_on(t).cast::<i64>() + counted_on(t.cast::<i64>()) * N as i64);
}

#[test]
fn functions_count_in_their_own_numbers() {
    let x: [i16; 8] = std::array::from_fn(|i| i as i16 * 3 - 5);
    let one = |i: usize| (f64::from(x[i]) + (1 + 2 * i) as f64) * 101.0;
    check_kernel!(counted<N = 100>(
        input x: (x.to_vec(), [8]), output y: (vec![0i64; 8], [8] => (0..8).map(one).collect::<Vec<f64>>(), 0.0),
    ));
}
