//! Attributes, grids, views and products.

use super::super::check_exact;
use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

#[tile_kernel(where(BK % 16 == 0))]
fn multiplied<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    for mut tile in c.tiles_persistent(Grouped(8)) {
        let [i, j] = tile.index();
        let mut acc = Tile::<f32, 2>::zeros([BM, BN]);
        for p in 0..a.tiles(1) {
            let (a, b) = (a.load_masked([i, p]), b.load_masked([p, j]));
            acc = mma(a, b, acc);
        }
        tile.store_masked(acc);
    }
}

#[test]
fn products_are_of_tiles() {
    let (m, k, n) = (20, 33, 40);
    let [a, b] = [(1, m * k), (2, k * n)].map(|(seed, count)| numbers::<f32>(count, seed));
    let dot = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum::<f32>();
    let c: Vec<f32> = (0..m * n).map(dot).collect();
    check_kernel!(multiplied<BM = 16, BN = 16, BK = 16>(
        input a: (a, [m, k]), input b: (b, [k, n]), output c: (vec![0f32; m * n], [m, n] => c, 1e-5),
    ));
}

/// The rows of which the last take longest begin first.
#[tile_kernel]
fn sums_up_to<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    for mut tile in y.tiles_persistent(Falling(0)) {
        let [last] = tile.index();
        let mut sum = Tile::<f32, 1>::zeros([1]);
        for i in 0..last + 1 {
            sum += x.load_masked([i]).sum(0);
        }
        tile.store_masked(sum.broadcast([B]));
    }
}

#[test]
fn tiles_are_taken_from_the_last_to_the_first() {
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0];
    check_exact!(sums_up_to<B = 2>(x: x, [5]) -> f32, [5] => [3.0f32, 3.0, 10.0, 10.0, 15.0]);
}

/// Of a matrix as large as it is wide, in tiles.
#[tile_kernel(instances(BM = 4 | 8, BN = 4), where(m == n, m > 0), grid = tiles, allow(slow_product))]
fn flipped<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.permute([1, 0]).partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let inner = x.shrink([(0, m), (0, n)]);
    let x = inner;
    let x = x.partition_view([BM, BN]);
    let tile = x.load_masked([i, j]) * x.tiles(1) as f32 + x.extent(0) as f32;
    y.prefetch();
    y.store_masked(tile);
}

#[test]
fn tiles_of_views_are_loaded_and_stored() {
    let x = numbers::<f32>(36, 1);
    let y: Vec<f32> = (0..36).map(|i| x[i % 6 * 6 + i / 6] * 2.0 + 6.0).collect();
    check_exact!(flipped<BM = 4, BN = 4>(x: x, [6, 6]) -> f32, [6, 6] => y);
}

/// The rows of images of one channel, as rows of one matrix.
#[tile_kernel]
fn lines<const B: usize>(x: &Tensor<f32, n, 1, 3, 4>, y: &mut Tensor<f32, { 3 * n }, 4>) {
    let x = x.flatten(0, 2).partition_view([B, 4]);
    let mut y = y.partition_view_mut([B, 4]);
    y.store_masked(x.load_masked(y.index()) + 1.0);
}

#[test]
fn axes_become_one() {
    let x = numbers::<f32>(24, 1);
    let y: Vec<f32> = x.iter().map(|x| x + 1.0).collect();
    check_exact!(lines<B = 4>(x: x, [2, 1, 3, 4]) -> f32, [6, 4] => y);
}

/// Sums of 8-bit floats may have fewer bits, in instances that say so.
#[tile_kernel(instances(FAST = true | false), fast_accumulation = FAST)]
fn summed<const FAST: bool>(
    a: &Tensor<f8e4m3fn, 16, k>,
    b: &Tensor<f8e4m3fn, k, 8>,
    c: &mut Tensor<f32, 16, 8>,
) {
    let (a, b) = (a.partition_view([16, 32]), b.partition_view([32, 8]));
    let mut acc = Tile::zeros([16, 8]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([0, p]), b.load_masked([p, 0]), acc);
    }
    c.partition_view_mut([16, 8]).store(acc);
}

#[test]
fn sums_of_fewer_bits_are_a_matter_of_instances() {
    let k = 70;
    let (a, b) = (numbers::<f8e4m3fn>(16 * k, 1), numbers::<f8e4m3fn>(k * 8, 2));
    let term = |at: usize, p: usize| f64::from(a[at / 8 * k + p].to_f32() * b[p * 8 + at % 8].to_f32());
    let c: Vec<f64> = (0..16 * 8).map(|at| (0..k).map(|p| term(at, p)).sum()).collect();
    check_kernel!(summed<FAST = true>(
        input a: (a, [16, k]), input b: (b, [k, 8]), output c: (vec![0f32; 16 * 8], [16, 8] => c, 1e-5),
    ));
    check_kernel!(summed<FAST = false>(
        input a: (a, [16, k]), input b: (b, [k, 8]), output c: (vec![0f32; 16 * 8], [16, 8] => c, 1e-5),
    ));
}

#[tile_kernel(grid = [m.div_ceil(BM), 4])]
fn added<const BM: usize>(x: &Tensor<f32, m>, y: &mut Tensor<f32, 4>) {
    let y = y.atomic_view();
    let values = x.partition_view([BM]).load_masked([block_id(0)]).sum(0) * block_count(1) as f32;
    let i = Tile::<i32, 1>::full([1], block_id(1) as i32);
    y.fetch_add([i], values, Relaxed, DeviceScope);
}

#[test]
fn blocks_of_a_grid_add() {
    let x = numbers::<f32>(11, 1);
    let sum: f32 = x.iter().sum();
    check_exact!(added<BM = 4>(x: x, [11]) -> f32, [4] => [4.0 * sum; 4]);
}

#[tile_kernel(where(BM % 4 == 0))]
fn totals<const BM: usize, const BN: usize>(
    x: Option<&Tensor<f32, _, n>>,
    scale: Option<f32>,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]).spanning([1]);
    let factor = {
        let x = scale;
        x.unwrap_or(1.0)
    };
    for j in 0..y.tiles(1) {
        let mut t = Tile::full([BM, BN], factor);
        if let Some(x) = x {
            t += x.partition_view([1, BN]).load_masked([0, j]) * x.extent(0) as f32;
        }
        y.at([j]).store_masked(t);
    }
}

#[test]
fn optional_arguments_are_used_where_they_are() {
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let found = |given: bool| {
        let device = Device::reference();
        let x = Tensor::from_slice(&device, &x, [2, 3])?;
        let mut y = Tensor::zeros(&device, [1, 3])?;
        totals::<4, 2>(given.then_some(&x), given.then_some(0.5), &mut y).launch()?;
        y.to_vec()
    };
    assert_eq!(found(true).expect("it runs"), [2.5, 4.5, 6.5]);
    assert_eq!(found(false).expect("it runs"), [1.0; 3]);
}

#[tile_kernel(where(m == n))]
fn added_to_rows<const BM: usize, const BN: usize>(x: &Tensor<f32, m>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, _] = y.index();
    let tile = x.partition_view([BM]).load_masked([i]).unsqueeze(1).broadcast([BM, BN]);
    y.store_masked(tile);
}

#[tile_kernel(where(n % 16 == 0))]
fn doubled(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([16]);
    y.store(x.partition_view([16]).load(y.index()) * 2.0);
}

#[test]
fn conditions_are_of_the_kernel() {
    let x = [1.0f32, 2.0, 3.0];
    let y = [1.0f32, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0];
    check_exact!(added_to_rows<BM = 2, BN = 4>(x: x, [3]) -> f32, [3, 3] => y);
    check_exact!(doubled<>(x: [0.5f32; 32], [32]) -> f32, [32] => [1.0f32; 32]);
}

/// Parameters of each kind.
#[tile_kernel]
fn kinds<E: Element, I: Int, N: Number, F: Float, const TWICE: bool, const B: usize>(
    e: &Tensor<E, n>,
    i: &Tensor<I, n>,
    x: &Tensor<N, n>,
    f: &Tensor<F, n>,
    y: &mut Tensor<f32, n>,
) {
    let mut y = y.partition_view_mut([B]);
    let e = e.partition_view([B]).load_masked(y.index()).cast::<f32>();
    let i = i.partition_view([B]).load_masked(y.index()) & I::ONE;
    let x = x.partition_view([B]).load_masked(y.index()) + N::ONE;
    let f = sqrt(f.partition_view([B]).load_masked(y.index()));
    let sum = e + i.cast::<f32>() + x.cast::<f32>() + f.cast::<f32>();
    y.store_masked(if TWICE { sum * 2.0 } else { sum });
}

#[test]
fn parameters_are_of_each_kind() {
    let found = || {
        let device = Device::reference();
        let e = Tensor::from_slice(&device, &[true, false], [2])?;
        let i = Tensor::from_slice(&device, &[2i32, 3], [2])?;
        let x = Tensor::from_slice(&device, &[7u8, 8], [2])?;
        let f = Tensor::from_slice(&device, &[4.0f64, 9.0], [2])?;
        let mut y = Tensor::zeros(&device, [2])?;
        kinds::<bool, i32, u8, f64, true, 2>(&e, &i, &x, &f, &mut y).launch()?;
        y.to_vec()
    };
    assert_eq!(found().expect("it runs"), [22.0, 26.0]);
}

/// Constants of a format that a kernel is generic over, and numbers converted.
#[tile_kernel]
fn generic<T: Float, const N: usize>(x: &Tensor<T, n>, k: i32, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([N]);
    let x = x.partition_view([N]).load_masked(y.index()) * T::of(2.0) + Tile::full([1], k).cast::<T>();
    let rounded = {
        let k = N;
        n.div_ceil(k) * k
    };
    y.store_masked(x.cast::<f16>().cast::<f32>() + rounded as f32);
}

#[test]
fn numbers_become_those_of_a_format() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.5, -3.0], [3]).expect("it fits");
    let mut y = Tensor::zeros(&device, [3]).expect("it fits");
    generic::<f32, 4>(&x, 5, &mut y).launch().expect("it runs");
    assert_eq!(y.to_vec().expect("it is read"), [11.0, 14.0, 3.0]);
}

/// What is looked up in a table, and written and counted at the places where it stands there.
#[tile_kernel(grid = [1])]
fn at_indices<const B: usize>(table: &Tensor<f32, n>, t: &Tensor<i32, B>, y: &mut Tensor<f32, n>) {
    let t = t.partition_view([B]).load([0]);
    let p = t;
    let v = table.gather([t]);
    let y = y.atomic_view();
    y.store([p], v, Relaxed, DeviceScope);
    let condition = v > 2.0;
    let count = select(condition, 1i32, 0).sum(0).item();
    let v = select(condition, 1.0f32, 0.0) * count as f32;
    y.fetch_add([p], v, Relaxed, DeviceScope);
}

#[test]
fn elements_are_read_and_written_at_indices() {
    let (table, t) = ([1.0f32, 2.0, 3.0, 4.0], [3, 0, 2]);
    check_exact!(at_indices<B = 3>(table: table, [4]; t: t, [3]) -> f32, [4] => [1.0f32, 0.0, 5.0, 6.0]);
}
