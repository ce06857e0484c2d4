//! Logarithms of const parameters and the powers of two around them: loops of as many turns, extents, and conditions.

use super::{check_exact, devices};
use tile::prelude::*;

/// A scan in steps that double: each turn adds what is twice as far away.
#[tile_kernel(where(N <= 64, N.is_power_of_two()))]
fn doubling<const N: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([N]);
    let mut y = y.partition_view_mut([N]);
    let mut sum = x.load_masked(y.index());
    for step in 0..N.ilog2() {
        sum += sum.shift(0, 1 << step, 0);
    }
    y.store_masked(sum);
}

#[test]
fn a_scan_has_as_many_turns_as_the_logarithm_of_a_parameter() {
    let x: Vec<i32> = (0..70).map(|i| i * i % 17 - 8).collect();
    let sums = |block: usize| -> Vec<i32> {
        x.chunks(block).flat_map(|part| (0..part.len()).map(|i| part[..=i].iter().sum())).collect()
    };
    check_exact!(doubling<N = 1>(x: x.clone(), [70]) -> i32, [70] => sums(1));
    check_exact!(doubling<N = 2>(x: x.clone(), [70]) -> i32, [70] => sums(2));
    check_exact!(doubling<N = 16>(x: x.clone(), [70]) -> i32, [70] => sums(16));
    check_exact!(doubling<N = 64>(x: x.clone(), [70]) -> i32, [70] => sums(64));
}

#[test]
fn a_condition_asks_for_a_power_of_two() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1, 2, 3], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        for error in [
            doubling::<12>(&x, &mut y).launch().unwrap_err().to_string(),
            doubling::<0>(&x, &mut y).launch().unwrap_err().to_string(),
        ] {
            assert!(error.contains("N.is_power_of_two()"), "{label}: {error}");
        }
    }
}

/// Turns backwards and from a number on, of less than the whole logarithm, and its value.
#[tile_kernel(where(N >= 4, N <= 40))]
fn halving<const N: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    const TURNS: usize = (N / 2).ilog2() as usize;
    const SHIFT: u32 = N.ilog2();
    let x = x.partition_view([TURNS * 4]);
    let mut y = y.partition_view_mut([TURNS * 4]);
    let mut x = x.load_masked(y.index());
    for step in (1..=N.ilog2() - 1).rev() {
        x = x * 3 + x.roll(0, 1 << step);
    }
    for step in 0..TURNS {
        x = x * 2 - x.roll(0, step);
    }
    y.store_masked(x + (N.ilog2() * 100 + SHIFT) as i32);
}

fn halved(x: &[i32], n: usize) -> Vec<i32> {
    let turns = (n / 2).ilog2() as usize;
    let one = |part: &[i32]| {
        let mut x = part.to_vec();
        x.resize(turns * 4, 0);
        let rolled = |x: &[i32], by: usize| -> Vec<i32> {
            (0..x.len()).map(|i| x[(i + by * x.len() - by) % x.len()]).collect()
        };
        for step in (1..n.ilog2()).rev() {
            let moved = rolled(&x, 1 << step);
            x.iter_mut().zip(moved).for_each(|(x, moved)| *x = *x * 3 + moved);
        }
        for step in 0..turns {
            let moved = rolled(&x, step);
            x.iter_mut().zip(moved).for_each(|(x, moved)| *x = *x * 2 - moved);
        }
        x.truncate(part.len());
        x.into_iter().map(|x| x + n.ilog2() as i32 * 101).collect::<Vec<_>>()
    };
    x.chunks(turns * 4).flat_map(one).collect()
}

#[test]
fn parts_of_a_logarithm_count_turns_and_are_numbers() {
    let x: Vec<i32> = (0..30).map(|i| i * i % 17 - 8).collect();
    check_exact!(halving<N = 4>(x: x.clone(), [30]) -> i32, [30] => halved(&x, 4));
    check_exact!(halving<N = 17>(x: x.clone(), [30]) -> i32, [30] => halved(&x, 17));
    check_exact!(halving<N = 40>(x: x.clone(), [30]) -> i32, [30] => halved(&x, 40));
}

/// Rows of any length in tiles of the power of two above it, and a column for each of their halvings.
#[tile_kernel]
fn rounded_up<const N: usize>(
    x: &Tensor<i32, m, N>,
    w: &Tensor<i32, { (N + 1).ilog2() as usize }>,
    y: &mut Tensor<i32, m, { N.next_power_of_two() }>,
) {
    let x = x.partition_view([1, N.next_power_of_two()]);
    let w = w.partition_view([(N + 1).ilog2() as usize]).load([0]);
    let mut y = y.partition_view_mut([1, N.next_power_of_two()]);
    y.store(x.load_masked_or(7, y.index()) * w.sum(0).item());
}

#[test]
fn extents_are_powers_of_two() {
    let rounded = |n: usize, by: i32| -> Vec<i32> {
        let one = |row: i32| (0..n.next_power_of_two()).map(move |i| if i < n { row } else { 7 } * by);
        [2, 3].into_iter().flat_map(one).collect()
    };
    let x = |n: usize| -> Vec<i32> { [2, 3].into_iter().flat_map(|row| vec![row; n]).collect() };
    check_exact!(rounded_up<N = 5>(x: x(5), [2, 5]; w: vec![1, 2], [2]) -> i32, [2, 8] => rounded(5, 3));
    check_exact!(rounded_up<N = 8>(x: x(8), [2, 8]; w: vec![1, 2, 3], [3]) -> i32, [2, 8] => rounded(8, 6));
    check_exact!(rounded_up<N = 1>(x: x(1), [2, 1]; w: vec![5], [1]) -> i32, [2, 1] => rounded(1, 5));
}

/// The same of a size that a launch gives.
#[tile_kernel]
fn sized<const B: usize>(
    x: &Tensor<i32, n>,
    w: &Tensor<i32, { n.ilog2() as usize }>,
    y: &mut Tensor<i32, { n.next_power_of_two() }>,
) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let w = w.partition_view([B]).load_masked([0]);
    y.store_masked(x.load_masked_or(7, y.index()) * w.sum(0).item());
}

#[test]
fn extents_of_sizes_are_powers_of_two() {
    let expected = |n: usize, by: i32| -> Vec<i32> {
        (0..n.next_power_of_two()).map(|i| if i < n { 2 } else { 7 } * by).collect()
    };
    check_exact!(sized<B = 4>(x: vec![2; 5], [5]; w: vec![1, 2], [2]) -> i32, [8] => expected(5, 3));
    check_exact!(sized<B = 4>(x: vec![2; 8], [8]; w: vec![1, 2, 3], [3]) -> i32, [8] => expected(8, 6));
}
