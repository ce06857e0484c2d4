//! Atomic operations: nothing is lost, old values are what was there, and what is masked or outside stays.

use super::{Case, array, check_exact, devices, widen};
use tile::prelude::*;

/// Every block adds ones to tile (0, 0).
#[tile_kernel(grid = [BLOCKS])]
fn pile<const BLOCKS: usize>(y: &mut Tensor<f32, m, n>) {
    let rows = Tile::<i32, 2>::iota([16, 1], 0);
    let columns = Tile::<i32, 2>::iota([1, 16], 1);
    y.atomic_view().fetch_add((rows, columns), Tile::ones([16, 16]), Relaxed, DeviceScope);
}

#[test]
fn case_24_blocks_add_to_one_tile() {
    for (device, label) in devices() {
        let mut y = Tensor::zeros(&device, [512, 16]).unwrap();
        pile::<32>(&mut y).launch().unwrap();
        let expected: Vec<f32> = (0..512 * 16).map(|i| if i < 256 { 32.0 } else { 0.0 }).collect();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

/// The turn that each block drew.
#[tile_kernel]
fn draw(counter: &mut Tensor<u64, 1>, y: &mut Tensor<u64, n>) {
    let counter = counter.atomic_view();
    let mut y = y.partition_view_mut([1]);
    y.store(counter.fetch_add([0], Tile::ones([1]), AcqRel, SystemScope));
}

#[test]
fn case_24_a_counter_gives_a_permutation_and_goes_on() {
    for (device, label) in devices() {
        // On a simulated GPU a block that draws learns what all before it know: time goes by the square of their number.
        let blocks = if label.starts_with("simulated") { 100 } else { 1000 };
        let mut counter = Tensor::zeros(&device, [1]).unwrap();
        for launch in 0..2 {
            let mut y = Tensor::zeros(&device, [blocks]).unwrap();
            draw(&mut counter, &mut y).launch().unwrap();
            let mut drawn = y.to_vec().unwrap();
            drawn.sort_unstable();
            let first = launch * blocks as u64;
            assert_eq!(drawn, (first..first + blocks as u64).collect::<Vec<u64>>(), "{label}");
        }
        let mut single = Tensor::zeros(&device, [1]).unwrap();
        for expected in [0, 1] {
            let mut y = Tensor::from_slice(&device, &[9], [1]).unwrap();
            draw(&mut single, &mut y).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), [expected], "{label}");
        }
    }
}

/// Blocks add up parts of a product, and count themselves: nobody needs what was there before.
#[tile_kernel(grid = [BLOCKS])]
fn parts<const BLOCKS: usize, const K: usize>(
    a: &Tensor<bf16, 64, k>,
    b: &Tensor<bf16, k, 64>,
    c: &mut Tensor<f32, 64, 64>,
    greatest: &mut Tensor<f32, 1>,
) {
    let (a, b) = (a.partition_view([64, K]), b.partition_view([K, 64]));
    let each = a.tiles(1).div_ceil(BLOCKS);
    let mut sum = Tile::<f32, 2>::zeros([64, 64]);
    for p in block_id(0) * each..(block_id(0) + 1) * each {
        sum = mma(a.load_masked([0, p]), b.load_masked([p, 0]), sum);
    }
    let (row, column) = (Tile::<i32, 2>::iota([64, 1], 0), Tile::<i32, 2>::iota([1, 64], 1));
    greatest.atomic_view().fetch_max([0], sum.max(0).max(1).item(), Relaxed, DeviceScope);
    c.atomic_view().fetch_add([row, column], sum, Relaxed, DeviceScope);
}

#[test]
fn parts_of_products_are_added_where_they_belong() {
    for (device, label) in devices() {
        let k = 256;
        let number = |i: usize| bf16::from_f32((i * 7 % 5) as f32);
        let a: Vec<bf16> = (0..64 * k).map(number).collect();
        let b: Vec<bf16> = (0..k * 64).map(|i| number(i + 3)).collect();
        let product = |columns: std::ops::Range<usize>| -> Vec<f32> {
            let term = |i: usize, j: usize, p: usize| a[i * k + p].to_f32() * b[p * 64 + j].to_f32();
            let dot = |at: usize| columns.clone().map(|p| term(at / 64, at % 64, p)).sum();
            (0..64 * 64).map(dot).collect()
        };
        let halves = [product(0..k / 2), product(k / 2..k)];
        let greatest = halves.iter().flatten().copied().fold(0.0, f32::max);
        let (a, b) = (
            Tensor::from_slice(&device, &a, [64, k]).unwrap(),
            Tensor::from_slice(&device, &b, [k, 64]).unwrap(),
        );
        let (mut c, mut most) =
            (Tensor::<f32>::zeros(&device, [64, 64]).unwrap(), Tensor::<f32>::zeros(&device, [1]).unwrap());
        parts::<2, 64>(&a, &b, &mut c, &mut most).launch().unwrap();
        assert_eq!(c.to_vec().unwrap(), product(0..k), "{label}");
        assert_eq!(most.to_vec().unwrap(), [greatest], "{label}");
    }
}

/// Odd lanes are swapped; lanes 6 and 7 are outside.
#[tile_kernel]
fn odd(x: &mut Tensor<i32, n>, y: &mut Tensor<i32, 8>) {
    let x = x.atomic_view();
    let mut y = y.partition_view_mut([8]);
    let lanes = Tile::<i32, 1>::iota([8], 0);
    y.store(x.swap_masked((lanes % 2) == 1, [lanes], lanes + 100, Relaxed, DeviceScope));
}

#[test]
fn case_24_masked_lanes_are_untouched() {
    for (device, label) in devices() {
        let mut x = Tensor::from_slice(&device, &[10, 11, 12, 13, 14, 15], [6]).unwrap();
        let mut y = Tensor::from_slice(&device, &[-7; 8], [8]).unwrap();
        odd(&mut x, &mut y).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [10, 101, 12, 103, 14, 105], "{label}");
        assert_eq!(y.to_vec().unwrap(), [0, 11, 0, 13, 0, 15, 0, 0], "{label}");
    }
}

/// The mask swaps what the values are read from: arguments are evaluated in the order in which they stand.
#[tile_kernel(grid = [1])]
fn masked_by_a_swap(y: &mut Tensor<i32, n>) {
    let y = y.atomic_view();
    let at = Tile::<i32, 1>::iota([4], 0);
    y.fetch_add_masked(
        y.swap([at], 5, Relaxed, DeviceScope).lt(1),
        [at],
        y.load([at], Relaxed, DeviceScope),
        Relaxed,
        DeviceScope,
    );
}

#[test]
fn masks_are_evaluated_before_values() {
    let expected = [10.0, 5.0, 10.0, 5.0];
    Case {
        ir: masked_by_a_swap::ir(),
        bindings: &[],
        arguments: vec![array(&[0, 1, 0, 2], &[4])],
        output: 0,
        expected: expected.to_vec(),
        tolerance: 0.0,
        run: &|device| {
            let mut y = Tensor::from_slice(device, &[0, 1, 0, 2], [4])?;
            masked_by_a_swap(&mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// The larger and the smaller, with and without a sign.
#[tile_kernel(grid = [1])]
fn extremes(u: &mut Tensor<u32, 2>, i: &mut Tensor<i32, 2>) {
    let (u, i) = (u.atomic_view(), i.atomic_view());
    let first = Tile::<i32, 1>::zeros([1]);
    let ones = Tile::<u32, 1>::zeros([1]) - 1;
    u.fetch_max([first], ones, Relaxed, BlockScope);
    u.fetch_min([first + 1], ones, Relaxed, BlockScope);
    i.fetch_max([first], -1, Relaxed, BlockScope);
    i.fetch_min([first + 1], -1, Relaxed, BlockScope);
}

#[test]
fn case_24_maxima_with_and_without_sign() {
    for (device, label) in devices() {
        let mut u = Tensor::from_slice(&device, &[1, 1], [2]).unwrap();
        let mut i = Tensor::from_slice(&device, &[1, 1], [2]).unwrap();
        extremes(&mut u, &mut i).launch().unwrap();
        assert_eq!(u.to_vec().unwrap(), [0xffff_ffff, 1], "{label}");
        assert_eq!(i.to_vec().unwrap(), [1, -1], "{label}");
    }
}

/// 7 where the bits are those of y.
#[tile_kernel]
fn exchange(x: &mut Tensor<f32, n>, expected: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.atomic_view();
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let expected = expected.partition_view([4]).load_masked([i]);
    let lanes = Tile::<i32, 1>::iota([4], 0);
    y.store_masked(x.compare_exchange([lanes], expected, 7.0, AcqRel, DeviceScope));
}

#[test]
fn case_24_comparisons_are_of_bits() {
    for (device, label) in devices() {
        let mut x = Tensor::from_slice(&device, &[f32::NAN, -0.0, 0.0, 2.0], [4]).unwrap();
        let expected = Tensor::from_slice(&device, &[f32::NAN, 0.0, 0.0, 3.0], [4]).unwrap();
        let mut y = Tensor::zeros(&device, [4]).unwrap();
        exchange(&mut x, &expected, &mut y).launch().unwrap();
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(x.to_vec().unwrap()), bits(vec![7.0, -0.0, 7.0, 2.0]), "{label}");
        let old = y.to_vec().unwrap();
        assert!(old[0].is_nan(), "{label}");
        assert_eq!(bits(old[1..].to_vec()), bits(vec![-0.0, 0.0, 2.0]), "{label}");
    }
}

/// Every kind of integers, on element `block`.
#[tile_kernel(grid = [n])]
fn kinds(x: &mut Tensor<i64, k, n>) {
    let x = x.atomic_view();
    let column = Tile::full([1], block_id(0) as i64);
    x.fetch_add((0, column), 5, Relaxed, DeviceScope);
    x.fetch_sub((1, column), 5, Acquire, DeviceScope);
    x.fetch_and((2, column), 5, Release, DeviceScope);
    x.fetch_or((3, column), 5, AcqRel, DeviceScope);
    x.fetch_xor((4, column), 5, Relaxed, SystemScope);
    let old = x.load((5, column), Acquire, DeviceScope);
    x.store((6, column), old * 2, Release, DeviceScope);
}

#[test]
fn every_kind_of_integers() {
    for (device, label) in devices() {
        let (k, n) = (7, 9);
        let value = |row: usize, column: usize| (row * 100 + column) as i64;
        let x: Vec<i64> = (0..k * n).map(|i| value(i / n, i % n)).collect();
        let mut x = Tensor::from_slice(&device, &x, [k, n]).unwrap();
        kinds(&mut x).launch().unwrap();
        let expected: Vec<i64> = (0..k * n)
            .map(|i| {
                let (row, old) = (i / n, value(i / n, i % n));
                match row {
                    0 => old + 5,
                    1 => old - 5,
                    2 => old & 5,
                    3 => old | 5,
                    4 => old ^ 5,
                    5 => old,
                    _ => 2 * value(5, i % n),
                }
            })
            .collect();
        assert_eq!(x.to_vec().unwrap(), expected, "{label}");
    }
}

/// The largest of all, by every block; NaN is no number.
#[tile_kernel(grid = [n.div_ceil(8)])]
fn largest(x: &Tensor<f64, n>, y: &mut Tensor<f64, 2>) {
    let x = x.partition_view([8]).load_masked_or(0.0, [block_id(0)]);
    let y = y.atomic_view();
    y.fetch_max([Tile::<i32, 1>::zeros([8])], x, Relaxed, DeviceScope);
    y.fetch_min([Tile::<i32, 1>::ones([8])], x, Relaxed, DeviceScope);
}

#[test]
fn extremes_of_floats_lose_nothing() {
    for (device, label) in devices() {
        let mut x: Vec<f64> = (0..1003).map(|i| f64::from((i * 389) % 1003) - 500.0).collect();
        x[17] = f64::NAN;
        let kept = || x.iter().copied().filter(|x| !x.is_nan());
        let expected = [kept().fold(0.0, f64::max), kept().fold(0.0, f64::min)];
        let x = Tensor::from_slice(&device, &x, [1003]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        largest(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

/// One element after the other, by numbers alone: sums, what is outside, the largest by comparisons, a mark.
#[tile_kernel(grid = [n])]
fn tally(x: &Tensor<i32, n>, rows: &mut Tensor<i32, 3, 4>) {
    let i = block_id(0);
    let x = x.partition_view([1]).load([i]).item();
    let rows = rows.atomic_view();
    let row = i % 3;
    let add = |column: usize, by: i32| rows.fetch_add([row, column], by, Relaxed, DeviceScope);
    let before = add(0, x);
    add(9, before);
    add(1, 1 + add(9, 5));
    let mut seen = rows.load([row, 2], Acquire, DeviceScope);
    while x > seen {
        let found = rows.compare_exchange([row, 2], seen, x, AcqRel, DeviceScope);
        seen = if found == seen { x } else { found };
    }
    if i + 3 >= n {
        rows.store((row, 3), -1, Release, DeviceScope);
    }
}

#[test]
fn numbers_name_one_element() {
    let x: Vec<i32> = (0..301).map(|i| i * 389 % 1003 - 400).collect();
    let of_row = |row: usize| x.iter().skip(row).step_by(3);
    let row = |row: usize| {
        let largest = of_row(row).fold(0, |largest, &x| largest.max(x));
        [of_row(row).sum(), of_row(row).count() as i32, largest, -1]
    };
    check_exact!(tally<>(x: x.clone(), [301]) -> i32, [3, 4] => (0..3).flat_map(row));
}

/// What is drawn is a number: each block has another one, and its threads agree on it.
#[tile_kernel]
fn ticket(counter: &mut Tensor<u64, 1>, y: &mut Tensor<u64, n, 2>) {
    let counter = counter.atomic_view();
    let mut y = y.partition_view_mut([1, 2]);
    let drawn = counter.fetch_add([0], 1, AcqRel, DeviceScope);
    y.store(Tile::full([1, 2], drawn * 2 + 1));
}

#[test]
fn blocks_draw_numbers() {
    for (device, label) in devices() {
        let mut counter = Tensor::zeros(&device, [1]).unwrap();
        let mut y = Tensor::zeros(&device, [100, 2]).unwrap();
        ticket(&mut counter, &mut y).launch().unwrap();
        let mut drawn = y.to_vec().unwrap();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..200).map(|i| i / 2 * 2 + 1).collect::<Vec<u64>>(), "{label}");
        assert_eq!(counter.to_vec().unwrap(), [100], "{label}");
    }
}

/// All threads of a block count, then one asks and writes.
#[tile_kernel(grid = [1])]
fn counted(x: &Tensor<i32, 4096>, counts: &mut Tensor<i32, 3>) {
    let x = x.partition_view([4096]).load([0]);
    let counts = counts.atomic_view();
    counts.store([0], 7, Relaxed, DeviceScope);
    counts.fetch_add([x], 1, Relaxed, DeviceScope);
    let all = counts.load([0], Relaxed, DeviceScope);
    counts.store([1], all, Relaxed, DeviceScope);
    counts.fetch_add([x], 1, Release, DeviceScope);
    let all = counts.load([0], Acquire, DeviceScope);
    counts.store([2], all, Relaxed, DeviceScope);
}

/// Each element moves on by one place.
#[tile_kernel(grid = [1])]
fn moved_on(y: &mut Tensor<f32, 1024>) {
    let y = y.atomic_view();
    let at = Tile::<i32, 1>::iota([1024], 0);
    let before = y.load([at - 1], Relaxed, BlockScope);
    y.store([at], before, Relaxed, BlockScope);
}

/// Windows that overlap, in each the number of its turn.
#[tile_kernel(grid = [1])]
fn last_turn(y: &mut Tensor<i32, 1024>) {
    let y = y.atomic_view();
    let at = Tile::<i32, 1>::iota([512], 0);
    for p in 0..8 {
        y.store([at + p * 32], Tile::full([512], p), Relaxed, BlockScope);
    }
}

#[test]
fn operations_of_a_block_on_a_tensor_come_one_after_the_other() {
    for (device, label) in devices() {
        let x = Tensor::zeros(&device, [4096]).unwrap();
        let mut counts = Tensor::zeros(&device, [3]).unwrap();
        counted(&x, &mut counts).launch().unwrap();
        assert_eq!(counts.to_vec().unwrap(), [7 + 2 * 4096, 7 + 4096, 7 + 2 * 4096], "{label}");

        let numbers: Vec<f32> = (0..1024).map(|i| i as f32 + 1.0).collect();
        let mut y = Tensor::from_slice(&device, &numbers, [1024]).unwrap();
        moved_on(&mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), (0..1024).map(|i| i as f32).collect::<Vec<_>>(), "{label}");

        let mut y = Tensor::zeros(&device, [1024]).unwrap();
        last_turn(&mut y).launch().unwrap();
        let last = |k: usize| if k < 736 { (k / 32).min(7) as i32 } else { 0 };
        assert_eq!(y.to_vec().unwrap(), (0..1024).map(last).collect::<Vec<_>>(), "{label}");
    }
}
