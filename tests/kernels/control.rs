//! Branches, loops, scalars, run-time sizes and block indices.

use super::{Case, array, check_exact, check_vectors, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// A branch on arguments, as a statement and as an expression, and functions of scalars.
#[tile_kernel]
fn scale_or_shift<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, alpha: f32, shift: bool) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let x = x.load_masked([i]);
    let factor = if alpha > 1.0 { exp(alpha) } else { -alpha };
    let mut result = if shift { x + factor } else { x * factor };
    if i == 0 || shift && alpha < 0.0 {
        result += 1.0;
    } else if i + 1 == y.tiles(0) {
        result -= 1.0;
    }
    y.store_masked(result);
}

/// The lower triangle, from positions: what causal attention masks with.
#[tile_kernel]
fn lower_triangle<const B: usize>(x: &Tensor<f32, n, n>, y: &mut Tensor<f32, n, n>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, j] = y.index();
    let rows = Tile::<i32, 2>::iota([B, B], 0) + (i * B) as i32;
    let columns = Tile::<i32, 2>::iota([B, B], 1) + (j * B) as i32;
    y.store_masked(select(columns <= rows, x.load_masked([i, j]), 0.0));
}

/// Nested loops with two carried values, and a run-time size in arithmetic: powers of x, summed.
#[tile_kernel]
fn power_series<const B: usize, const TERMS: usize>(x: &Tensor<f64, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let (mut power, mut sum) = (Tile::ones([B]), Tile::zeros([B]));
    for term in 0..TERMS {
        sum += power / (term + 1) as f64;
        for _ in 0..2 {
            power *= x;
        }
    }
    y.store_masked(sum * n as f64);
}

#[test]
fn branches_follow_scalars_and_block_indices() {
    let (n, block) = (20, 8);
    let x = numbers::<f32>(n, 1);
    for (alpha, shift) in [(1.5f32, false), (0.5, true), (-0.5, true)] {
        let factor = if alpha > 1.0 { alpha.exp() } else { -alpha };
        let one = |(at, x): (usize, &f32)| {
            let result = if shift { x + factor } else { x * factor };
            f64::from(match at / block {
                0 => result + 1.0,
                _ if shift && alpha < 0.0 => result + 1.0,
                2 => result - 1.0,
                _ => result,
            })
        };
        Case {
            ir: scale_or_shift::ir(),
            bindings: &[("B", Binding::Const(block))],
            arguments: vec![
                array(&x, &[n]),
                array(&vec![0f32; n], &[n]),
                array(&[alpha], &[]),
                array(&[shift], &[]),
            ],
            output: 1,
            expected: x.iter().enumerate().map(one).collect(),
            tolerance: 1e-6,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [n])?;
                let mut y = Tensor::zeros(device, [n])?;
                scale_or_shift::<8>(&x, &mut y, alpha, shift).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

#[test]
fn positions_make_masks() {
    let n = 10;
    let x = numbers::<f32>(n * n, 2);
    Case {
        ir: lower_triangle::ir(),
        bindings: &[("B", Binding::Const(4))],
        arguments: vec![array(&x, &[n, n]), array(&vec![9f32; n * n], &[n, n])],
        output: 1,
        expected: widen(&x)
            .iter()
            .enumerate()
            .map(|(at, &x)| if at % n <= at / n { x } else { 0.0 })
            .collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n, n])?;
            let mut y = Tensor::zeros(device, [n, n])?;
            lower_triangle::<4>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn loops_carry_several_values() {
    let n = 6;
    let x = numbers::<f64>(n, 3);
    let series = |x: &f64| (0..5).map(|term| x.powi(2 * term) / f64::from(term + 1)).sum::<f64>() * n as f64;
    Case {
        ir: power_series::ir(),
        bindings: &[("B", Binding::Const(4)), ("TERMS", Binding::Const(5))],
        arguments: vec![array(&x, &[n]), array(&vec![0f64; n], &[n])],
        output: 1,
        expected: x.iter().map(series).collect(),
        tolerance: 1e-14,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let mut y = Tensor::zeros(device, [n])?;
            power_series::<4, 5>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// What stands right of `&&` and `||` happens only where the left side leaves the answer open.
#[tile_kernel]
fn short_circuit<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [block] = y.index();
    let mut seen = 0;
    let next = block + 1 < x.tiles(0) && {
        seen += 1;
        // SAFETY: the left side says that there is a tile after this one.
        unsafe { x.load_unchecked([block + 1]) }.sum(0).item() > 0
    };
    let first = block == 0 || {
        seen += 10;
        x.load_masked([block - 1]).sum(0).item() > 0
    };
    let mut turns = 0;
    while turns < 5 && {
        seen += 100;
        !next
    } {
        turns += 1;
    }
    let answers = select(next, 1000, 0) + select(first, 2000, 0);
    y.store_masked(Tile::full([B], seen + answers));
}

#[test]
fn the_right_side_of_a_condition_is_not_always_reached() {
    let x: Vec<i32> = vec![1, 2, -8, 1, 3, 4, 0, -1];
    let sums: Vec<i32> = x.chunks(2).map(|block| block.iter().sum()).collect();
    let block = |block: usize| {
        let mut seen = 0;
        let next = block + 1 < sums.len() && {
            seen += 1;
            sums[block + 1] > 0
        };
        let first = block == 0 || {
            seen += 10;
            sums[block - 1] > 0
        };
        let mut turns = 0;
        while turns < 5 && {
            seen += 100;
            !next
        } {
            turns += 1;
        }
        let value = seen + i32::from(next) * 1000 + i32::from(first) * 2000;
        [f64::from(value); 2]
    };
    let expected = (0..sums.len()).flat_map(block).collect();
    check_vectors(short_circuit::ir(), &[("B", Binding::Const(2))], &x, expected, 0.0, |x, y| {
        short_circuit::<2>(x, y).launch()
    });
}

/// Variables that arguments of macros assign are those of the loop and the branch around.
#[test]
fn arguments_of_macros_assign() {
    #[tile_kernel]
    fn assigned_in_macros<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let x = x.load_masked(y.index());
        let mut sum = x;
        for _ in 0..n {
            let _ = dbg!({
                sum += x;
                sum
            });
        }
        let mut count = 0;
        if n > 2 {
            tile_assert!({
                count += 3;
                count == 3
            });
        }
        y.store_masked(sum + count as f32);
    }

    let x = [1.0_f32, 2.0, 3.0];
    let expected = x.iter().map(|&x| f64::from(4.0 * x + 3.0)).collect();
    check_vectors(assigned_in_macros::ir(), &[("B", Binding::Const(2))], &x, expected, 0.0, |x, y| {
        assigned_in_macros::<2>(x, y).launch()
    });
}

/// A macro with `;` behind it gives nothing.
#[expect(clippy::dbg_macro, clippy::single_match, reason = "what they give is the test")]
#[tile_kernel]
fn shown_at_the_end(y: &mut Tensor<i32, 1>) {
    let mut sum = 0;
    for p in 0..4 {
        sum += p;
        if p == 3 {
            dbg!(p);
        }
        match p {
            0 => {
                matches!(p, 0 | 1);
            }
            _ => {}
        }
    }
    let twice = {
        dbg!(sum);
        dbg!(2 * sum)
    };
    y.partition_view_mut([1]).store(Tile::full([1], twice));
}

#[test]
fn a_macro_at_the_end_of_a_block_gives_nothing_before_a_semicolon() {
    check_exact!(shown_at_the_end<>() -> i32, [1] => [12]);
}
