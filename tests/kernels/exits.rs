//! `break`, `continue`, `return` and `match`, against the same control flow over plain numbers.

use super::whole::check_kernel;
use super::{Case, array, check_vectors, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

const B8: &[(&str, Binding)] = &[("B", Binding::Const(8))];

/// `loop` with `break` of a value, and a variable that is assigned on the way out.
#[tile_kernel]
fn doubled_until<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut tile = x.load_masked(y.index());
    let mut turns = 0;
    let last = loop {
        tile *= 2.0;
        turns += 1;
        if turns > 20 {
            break tile * 0.0;
        }
        if tile.max(0).item() > 10.0 {
            turns += 100;
            break tile + 1.0;
        }
        turns += 1;
    };
    y.store_masked(last + turns as f32);
}

#[test]
fn a_loop_breaks_with_a_value() {
    let mut x = numbers::<f32>(24, 1);
    x[8..16].fill(-1.0);
    let block = |block: &[f32]| {
        let (mut tile, mut turns) = (block.to_vec(), 0);
        let last: Vec<f32> = loop {
            tile.iter_mut().for_each(|x| *x *= 2.0);
            turns += 1;
            if turns > 20 {
                break vec![0.0; block.len()];
            }
            if tile.iter().copied().fold(f32::MIN, f32::max) > 10.0 {
                turns += 100;
                break tile.iter().map(|x| x + 1.0).collect();
            }
            turns += 1;
        };
        last.into_iter().map(move |x| f64::from(x + turns as f32))
    };
    let expected = x.chunks(8).flat_map(block).collect();
    check_vectors(doubled_until::ir(), B8, &x, expected, 0.0, |x, y| doubled_until::<8>(x, y).launch());
}

/// Labelled blocks that give values, one left out of a loop, one that another exit passes through.
#[tile_kernel]
fn labelled_blocks<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    let start = tile.sum(0).item();
    let mut visits = 0;
    let kind = 'kind: {
        if start < 0 {
            break 'kind -1;
        }
        for p in 0..10 {
            visits += 1;
            if p * p >= start {
                break 'kind p;
            }
        }
        visits += 100;
        1000
    };
    let mut sum = tile;
    'turns: for p in 0..4 {
        'turn: {
            if p == kind {
                break 'turn;
            }
            if p > start {
                continue 'turns;
            }
            sum += 10;
        }
        sum += p;
    }
    y.store_masked(sum * 100_000 + kind * 100 + visits);
}

#[test]
fn blocks_are_left_with_a_value() {
    let x: Vec<i32> = vec![-5, 0, 1, 2, 3, 50, 81, 90, 9, -1];
    let one = |&start: &i32| {
        let mut visits = 0;
        let kind = if start < 0 {
            -1
        } else {
            let found = (0..10).inspect(|_| visits += 1).find(|p| p * p >= start);
            found.unwrap_or_else(|| {
                visits += 100;
                1000
            })
        };
        let turns = (0..4).filter(|&p| p == kind || p <= start);
        let sum = start + turns.map(|p| p + if p == kind { 0 } else { 10 }).sum::<i32>();
        f64::from(sum * 100_000 + kind * 100 + visits)
    };
    let bindings: &[(&str, Binding)] = &[("B", Binding::Const(1))];
    let expected = x.iter().map(one).collect();
    check_vectors(labelled_blocks::ir(), bindings, &x, expected, 0.0, |x, y| {
        labelled_blocks::<1>(x, y).launch()
    });
}

/// Blocks that end early: at once, in a branch, in nested loops. What comes after must not run for them.
#[tile_kernel]
fn early<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, limit: f32) {
    if limit < 0.0 {
        return;
    }
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    if i == 1 {
        return;
    }
    let tile = x.load_masked([i]);
    y.store_masked(tile);
    let mut sum = 0.0;
    for a in 0..4 {
        for b in 0..=a {
            sum += (a * b + i) as f32;
            if sum > limit {
                y.store_masked(tile + sum);
                return;
            }
        }
    }
    y.store_masked(tile - sum);
}

#[test]
fn a_block_returns_early() {
    let n = 30;
    let x = numbers::<f32>(n, 2);
    for limit in [-1.0f32, 3.0, 30.0, 1000.0] {
        let one = |(at, &x): (usize, &f32)| {
            let i = at / 8;
            if limit < 0.0 || i == 1 {
                return 0.0;
            }
            let mut sum = 0.0;
            for a in 0..4 {
                for b in 0..=a {
                    sum += (a * b + i) as f32;
                    if sum > limit {
                        return f64::from(x + sum);
                    }
                }
            }
            f64::from(x - sum)
        };
        Case {
            ir: early::ir(),
            bindings: B8,
            arguments: vec![array(&x, &[n]), array(&vec![0f32; n], &[n]), array(&[limit], &[])],
            output: 1,
            expected: x.iter().enumerate().map(one).collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [n])?;
                let mut y = Tensor::zeros(device, [n])?;
                early::<8>(&x, &mut y, limit).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

/// Labelled exits over three loops of different kinds, and values assigned before and after them.
#[tile_kernel]
fn labelled<const B: usize>(x: &Tensor<f64, n>, y: &mut Tensor<f64, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let (mut sum, mut count) = (x.load_masked([i]), 0);
    'outer: for a in 0..6 {
        let mut b = 0;
        count += 1;
        'middle: while b < 5 {
            b += 1;
            if b == 2 {
                continue;
            }
            for c in (0..4).rev() {
                count += 1;
                if a + b + c == 5 {
                    continue 'middle;
                }
                if a * b == 6 {
                    continue 'outer;
                }
                if a + b > 8 {
                    break 'outer;
                }
                if c == 1 {
                    break;
                }
                sum = sum * 1.5 + (a * 100 + b * 10 + c) as f64;
            }
            sum += 0.25;
        }
        sum -= 0.5;
    }
    y.store_masked(sum + count as f64);
}

#[test]
fn labels_leave_the_loops_that_they_name() {
    let x = numbers::<f64>(9, 3);
    let one = |&x: &f64| {
        let (mut sum, mut count) = (x, 0);
        'outer: for a in 0..6 {
            let mut b = 0;
            count += 1;
            'middle: while b < 5 {
                b += 1;
                if b == 2 {
                    continue;
                }
                for c in (0..4).rev() {
                    count += 1;
                    if a + b + c == 5 {
                        continue 'middle;
                    }
                    if a * b == 6 {
                        continue 'outer;
                    }
                    if a + b > 8 {
                        break 'outer;
                    }
                    if c == 1 {
                        break;
                    }
                    sum = sum * 1.5 + f64::from(a * 100 + b * 10 + c);
                }
                sum += 0.25;
            }
            sum -= 0.5;
        }
        sum + f64::from(count)
    };
    let expected = x.iter().map(one).collect();
    check_vectors(labelled::ir(), B8, &x, expected, 1e-12, |x, y| labelled::<8>(x, y).launch());
}

/// Branches that leave where others give a value, in `let`, in assignments and in `match`.
#[tile_kernel]
fn diverging<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let tile = x.load_masked([i]);
    let mut sum = tile;
    let mut last = 0.0;
    for k in 0..10 {
        let (weight, extra) = if k % 3 == 0 {
            continue;
        } else {
            (k as f32, tile * 2.0)
        };
        last = match k {
            1 => 0.5,
            7 => break,
            _ => weight + 1.0,
        };
        sum += extra * weight + last;
    }
    y.store_masked(sum + last);
}

#[test]
fn a_branch_may_leave_where_another_gives_a_value() {
    let x = numbers::<f32>(20, 4);
    let one = |&x: &f32| {
        let (mut sum, mut last) = (x, 0.0);
        for k in 0..10 {
            let weight = if k % 3 == 0 { continue } else { k as f32 };
            last = match k {
                1 => 0.5,
                7 => break,
                _ => weight + 1.0,
            };
            sum += x * 2.0 * weight + last;
        }
        f64::from(sum + last)
    };
    let expected = x.iter().map(one).collect();
    check_vectors(diverging::ir(), B8, &x, expected, 1e-5, |x, y| diverging::<8>(x, y).launch());
}

/// Every kind of pattern, on numbers known at run time and when the macro expands.
#[tile_kernel]
fn matched<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    const SPECIAL: i32 = 6;
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut tile = x.load_masked([i]);
    for k in -4i32..12 {
        let value = match k {
            i32::MIN..=-3 => 1,
            -2 | -1 => 2,
            0 => 3,
            SPECIAL => 5,
            odd if odd % 2 == 1 && odd < 6 => odd * 10,
            large @ 8..=10 => large + i as i32,
            _ => 7,
        };
        tile = tile * 3 + value;
    }
    let flag = i == 1;
    match (flag, i) {
        (true, _) => tile += 1000,
        (false, 0) => {}
        (false, 2..) => tile -= 1000,
        _ => {}
    }
    let scale = match flag {
        true => 2,
        false => 3,
    };
    let unrolled = [1, 10, 100];
    for k in 0..3 {
        tile += unrolled[k]
            * match k {
                0 => 1,
                1 => 2,
                _ => 3,
            };
    }
    y.store_masked(tile * scale);
}

#[test]
fn patterns_choose_the_first_arm_that_fits() {
    let x: Vec<i32> = (0..20).map(|x| x * 7 - 50).collect();
    let one = |(at, &x): (usize, &i32)| {
        let i = at / 8;
        let mut tile = x;
        for k in -4i32..12 {
            let value = match k {
                i32::MIN..=-3 => 1,
                -2 | -1 => 2,
                0 => 3,
                6 => 5,
                1 | 3 | 5 => k * 10,
                8..=10 => k + i as i32,
                _ => 7,
            };
            tile = tile.wrapping_mul(3).wrapping_add(value);
        }
        tile = tile.wrapping_add([0, 1000, -1000][i]).wrapping_add(321);
        f64::from(tile.wrapping_mul(if i == 1 { 2 } else { 3 }))
    };
    let expected = x.iter().enumerate().map(one).collect();
    check_vectors(matched::ir(), B8, &x, expected, 0.0, |x, y| matched::<8>(x, y).launch());
}

/// Exits of unrolled loops, and a value that an inner loop gives to an outer one.
#[tile_kernel]
fn searched<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let tile = x.load_masked([i]);
    let limits = [0.25, 2.0, 5.0, 100.0];
    let mut round = 0;
    let (found, at) = 'search: loop {
        round += 1;
        for k in 0..4 {
            let sum = tile.sum(0).item() * round as f32 + i as f32 * 3.0;
            if sum > limits[k] {
                continue;
            }
            if k == 3 {
                break;
            }
            if round > 2 {
                break 'search (tile * limits[k], k as i32);
            }
        }
        if round == 5 {
            y.store_masked(tile);
            return;
        }
        if round == 4 {
            break (tile + 7.0, -1);
        }
    };
    y.store_masked(found + (at * 10 + round) as f32);
}

#[test]
fn exits_cross_unrolled_loops() {
    let mut x = [numbers::<f32>(40, 6), vec![-3.0; 8]].concat();
    x[32..40].fill(9.0);
    let block = |(i, block): (usize, &[f32])| {
        let limits = [0.25, 2.0, 5.0, 100.0];
        let total: f32 = block.iter().sum();
        let mut round = 0;
        let (scale, shift, at) = 'search: loop {
            round += 1;
            for (k, &limit) in limits.iter().enumerate() {
                let sum = total * round as f32 + i as f32 * 3.0;
                if sum > limit {
                    continue;
                }
                if k == 3 {
                    break;
                }
                if round > 2 {
                    break 'search (limit, 0.0, k as i32);
                }
            }
            if round == 4 {
                break (1.0, 7.0, -1);
            }
        };
        block.iter().map(|x| f64::from(x * scale + shift + (at * 10 + round) as f32)).collect::<Vec<_>>()
    };
    let expected = x.chunks(8).enumerate().flat_map(block).collect();
    check_vectors(searched::ir(), B8, &x, expected, 1e-6, |x, y| searched::<8>(x, y).launch());
}

/// The condition has an effect of its own, which `continue` doesn't leave out.
#[tile_kernel]
fn counted_by_the_condition(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let most = x.load_masked(y.index()).item();
    let (mut turns, mut sum) = (0, 0);
    while {
        turns += 1;
        turns < most
    } {
        if turns % 3 == 2 {
            continue;
        }
        if turns > 9 {
            break;
        }
        sum += turns;
    }
    y.store_masked(Tile::full([1], 100 * sum + turns));
}

#[test]
fn continue_goes_on_with_the_condition() {
    let x: Vec<i32> = (0..16).collect();
    let expected = x.iter().map(|&most| {
        let (mut turns, mut sum) = (0, 0);
        while {
            turns += 1;
            turns < most
        } {
            if turns % 3 == 2 {
                continue;
            }
            if turns > 9 {
                break;
            }
            sum += turns;
        }
        f64::from(100 * sum + turns)
    });
    let ir = counted_by_the_condition::ir();
    check_vectors(ir, &[], &x, expected.collect(), 0.0, |x, y| counted_by_the_condition(x, y).launch());
}

/// A loop that only `return` leaves: its value is whatever the function's is.
#[tile_fn]
fn root(x: f32) -> f32 {
    let mut guess = x;
    loop {
        let next = (guess + x / guess) * 0.5;
        if abs(next - guess) < 1e-3 {
            return next;
        }
        guess = next;
    }
}

/// Such a loop in one side of a branch, and one that only the block around it is left from.
#[tile_fn]
fn root_of_any(x: f32, turns: i32) -> f32 {
    let mut count = 0;
    let root = if x > 0.0 {
        loop {
            count += 1;
            if count > turns {
                return root(x);
            }
        }
    } else {
        -x
    };
    let counted = 'counted: {
        loop {
            count += 1;
            if count > turns {
                break 'counted count as f32;
            }
        }
    };
    root + counted
}

#[tile_kernel]
fn roots_by_function(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([1]);
    let mut y = y.partition_view_mut([1]);
    let s = x.load_masked(y.index()).item();
    y.store_masked(Tile::full([1], root_of_any(s, 4)));
}

#[test]
fn a_loop_that_only_a_return_leaves_has_any_type() {
    let x = [9.0f32, -2.0, 2.0, 0.0];
    let expected = x.iter().map(|&x| f64::from(if x > 0.0 { x.sqrt() } else { 5.0 - x }));
    let ir = roots_by_function::ir();
    check_vectors(ir, &[], &x, expected.collect(), 1e-3, |x, y| roots_by_function(x, y).launch());
}

/// A block with `unsafe` that may leave the kernel.
#[tile_kernel]
fn left_within_unsafe<const B: usize>(x: &Tensor<f32, n>, a: i32, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    // SAFETY: the tensors have as many elements, and the blocks whole tiles.
    let t = unsafe {
        if a > 4 {
            return;
        }
        x.load_unchecked(y.index())
    };
    y.store_masked(t * 2.0);
}

#[test]
fn a_block_with_unsafe_is_left_as_any_other() {
    for (given, expected) in [(1, [2.0f32, 4.0]), (5, [0.0, 0.0])] {
        check_kernel!(left_within_unsafe<B = 2>(
            input x: ([1f32, 2.0], [2]), number a: (given), output y: (vec![0f32; 2], [2] => expected, 0.0),
        ));
    }
}
