//! Tiles made, moved, reduced and multiplied, which other libraries call otherwise.

use super::super::check_exact;
use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// A case for each row of `y`.
#[tile_kernel(where(M % 2 == 0))]
fn moved<const M: usize, const N: usize>(x: &Tensor<f32, M, N>, y: &mut Tensor<f32, 20, { M * N }>) {
    let x = x.partition_view([M, N]).load([0, 0]);
    let [a, b] = x.split_even::<2>(0);
    let joined = cat([a, b], 0);
    let twice = stack([a, b], 0).reshape([M, N]);
    let (start, step) = (1.0, 2.0);
    let counted: Tile<f32, 1> = Tile::arange([N], start, step);
    let counted = counted.unsqueeze(0).broadcast([M, N]);
    let index = 1;
    let indices = (Tile::<i32, 2>::iota([1, N], 1) / 2).broadcast([M, N]);
    let rows = [
        x.t().t(),
        x.permute([1, 0]).permute([1, 0]),
        joined,
        twice,
        x.extract([0, 0], [M, 1]).broadcast([M, N]),
        x.take(index, 0).squeeze(0).unsqueeze(0).broadcast([M, N]),
        x.gather(indices, 1),
        x.max(1).broadcast([M, N]),
        x.min(1).broadcast([M, N]),
        x.sum(1).broadcast([M, N]),
        Tile::<f32, 2>::zeros([M, N]),
        Tile::ones([M, N]),
        Tile::full([M, N], 2.5),
        counted,
        {
            let (rows, columns) = (Tile::<i32, 2>::iota([M, 1], 0), Tile::<i32, 2>::iota([1, N], 1));
            select(rows >= columns, x, 0.0)
        },
        x.repeat([2, 2]).extract([1, 1], [M, N]),
    ];
    let mut y = y.partition_view_mut([1, M * N]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(rows[i].reshape([M * N]).unsqueeze(0));
    }
    let (seed, offset) = (7, 3);
    let bits = Tile::random_bits([M, N], seed, offset).cast::<f32>() / 4294967296.0;
    y.at([16]).store(bits.reshape([1, M * N]));
    y.at([17]).store(Tile::random_uniform([M, N], seed, offset).reshape([1, M * N]));
    y.at([18]).store(Tile::random_normal([M, N], seed, offset).reshape([1, M * N]));
    let (first, position) = (offset, 9u64);
    let positions = Tile::<u64, 2>::iota([M, N], 1) + first;
    let one = (philox(position, seed) >> 63) as f32;
    y.at([19]).store((Tile::random_uniform_at(positions, seed) + one).reshape([1, M * N]));
}

#[test]
fn movements_mean_what_they_are_offered_for() {
    let x = numbers::<f32>(8, 1);
    let at = |i: usize, j: usize| x[i * 4 + j];
    let most = |i: usize| x[i * 4..][..4].iter().copied().fold(f32::MIN, f32::max);
    let least = |i: usize| x[i * 4..][..4].iter().copied().fold(f32::MAX, f32::min);
    let of: [&dyn Fn(usize, usize) -> f32; 16] = [
        &at,
        &at,
        &at,
        &at,
        &|i, _| at(i, 0),
        &|_, j| at(1, j),
        &|i, j| at(i, j / 2),
        &|i, _| most(i),
        &|i, _| least(i),
        &|i, _| (0..4).map(|j| at(i, j)).sum(),
        &|_, _| 0.0,
        &|_, _| 1.0,
        &|_, _| 2.5,
        &|_, j| (1 + 2 * j) as f32,
        &|i, j| if i >= j { at(i, j) } else { 0.0 },
        &|i, j| at((i + 1) % 2, (j + 1) % 4),
    ];
    let mut expected: Vec<f32> = of.iter().flat_map(|of| (0..8).map(move |k| of(k / 4, k % 4))).collect();
    let bits = Tile::<u32, 1>::random_bits([8], 7, 3).to_vec();
    expected.extend(bits.iter().map(|&bits| bits as f32 / 4_294_967_296.0));
    expected.extend(Tile::<f32, 1>::random_uniform([8], 7, 3).to_vec());
    expected.extend(Tile::<f32, 1>::random_normal([8], 7, 3).to_vec());
    let one = (philox(9u64, 7u64) >> 63) as f32;
    let row = Tile::<f32, 1>::random_uniform([4], 7, 3).to_vec().into_iter().map(|number| number + one);
    expected.extend(row.clone().chain(row));
    check_kernel!(moved<M = 2, N = 4>(
        input x: (x, [2, 4]), output y: (vec![0f32; 160], [20, 8] => expected, 1e-6),
    ));
}

#[tile_kernel]
fn shaped<const M: usize, const N: usize>(x: &Tensor<f32, { M * N }>, y: &mut Tensor<f32, M, N>) {
    let x = x.partition_view([{ M * N }]).load([0]);
    let x = x.reshape([M, N]);
    let x = x.reshape([M * N]);
    let counted = {
        let x: Tile<i32, 1> = Tile::iota([N], 0);
        let x = x.unsqueeze(0);
        x.broadcast([M, N])
    };
    let nothing = Tile::zeros([M, N]);
    y.partition_view_mut([M, N]).store(x.reshape([M, N]) + nothing + counted.cast::<f32>());
}

#[test]
fn shapes_mean_what_they_are_offered_for() {
    let x = numbers::<f32>(8, 1);
    let expected: Vec<f32> = x.iter().enumerate().map(|(i, x)| x + (i % 4) as f32).collect();
    check_kernel!(shaped<M = 2, N = 4>(input x: (x, [8]), output y: (vec![0f32; 8], [2, 4] => expected, 0.0)));
}

#[tile_kernel]
fn interleaved<const N: usize>(a: &Tensor<f32, N>, b: &Tensor<f32, N>, y: &mut Tensor<f32, { 2 * N }>) {
    let (a, b) = (a.partition_view([N]).load([0]), b.partition_view([N]).load([0]));
    y.partition_view_mut([2 * N]).store(stack([a, b], 1).reshape([2 * N]));
}

#[test]
fn two_tiles_are_interleaved() {
    let y = [1.0f32, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0];
    check_exact!(interleaved<N = 4>(a: [1f32, 2.0, 3.0, 4.0], [4]; b: [5f32, 6.0, 7.0, 8.0], [4]) -> f32, [8] => y);
}
