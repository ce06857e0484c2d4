//! Ops along lines in whole kernels: closures, sorting, the largest elements, histograms.

use super::whole::check_kernel;
use super::{Case, array, check_exact, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// The running maximum and the sum that softmax divides by, in one pass, and the position of the maximum.
#[tile_kernel]
fn online_softmax<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, BN>,
    temperature: f32,
    y: &mut Tensor<f32, m, BN>,
) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    let x = x.load_masked(y.index());
    let position = Tile::<i32, 2>::iota([BM, BN], 1);
    let start = (f32::NEG_INFINITY, 0.0, -1);
    let (largest, sum, place) =
        reduce((x, Tile::ones([BM, BN]), position), 1, start, |(m, s, i), (x, w, j)| {
            let next = max(m, x);
            let mut at = i;
            if x > m && j >= 0 {
                at = j;
            }
            (next, s * exp((m - next) / temperature) + w * exp((x - next) / temperature), at)
        });
    let softmax = exp((x - largest) / temperature) / sum;
    y.store_masked(select(position == place, -softmax, softmax));
}

#[test]
fn online_softmax_agrees_with_loops() {
    let (m, n) = (5, 23);
    let x = numbers::<f32>(m * n, 3);
    let mut expected = Vec::new();
    for row in widen(&x).chunks(n) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| ((x - largest) / 0.25).exp()).sum();
        let first = row.iter().position(|&x| x == largest).expect("a row has a largest element");
        let softmax = row.iter().enumerate().map(|(i, x)| {
            let value = ((x - largest) / 0.25).exp() / sum;
            if i == first { -value } else { value }
        });
        expected.extend(softmax);
    }
    Case {
        ir: online_softmax::ir(),
        bindings: &[("BM", Binding::Const(2)), ("BN", Binding::Const(23))],
        arguments: vec![array(&x, &[m, n]), array(&[0.25f32], &[]), array(&vec![0f32; m * n], &[m, n])],
        output: 2,
        expected,
        // A sum of 23 terms, each of two exponentials within 2 ulp.
        tolerance: 1e-5,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            online_softmax::<2, 23>(&x, 0.25, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Hashes of planes: a fold over two axes that are not neighbours, in an order that matters.
#[tile_kernel]
fn plane_hashes<const A: usize, const B: usize, const C: usize>(
    x: &Tensor<u32, A, B, C>,
    y: &mut Tensor<u32, 1, B, 1>,
) {
    let x = x.partition_view([A, B, C]);
    let mut y = y.partition_view_mut([1, B, 1]);
    let x = x.load_masked([0, 0, 0]);
    y.store_masked(reduce(x, [2, 0], 17, |hash, x| ((hash << 5) ^ (hash >> 3)) ^ x));
}

#[test]
fn plane_hashes_agree_with_loops() {
    let [a, b, c] = [3, 4, 5];
    let x: Vec<u32> = (0..60u32).map(|i| i * i * 7919).collect();
    let hash = |j: usize| {
        let plane = (0..a).flat_map(|i| (0..c).map(move |k| (i * b + j) * c + k));
        let hash = plane.fold(17u32, |hash, i| ((hash << 5) ^ (hash >> 3)) ^ x[i]);
        f64::from(hash)
    };
    Case {
        ir: plane_hashes::ir(),
        bindings: &[("A", Binding::Const(a)), ("B", Binding::Const(b)), ("C", Binding::Const(c))],
        arguments: vec![array(&x, &[a, b, c]), array(&vec![0u32; b], &[1, b, 1])],
        output: 1,
        expected: (0..b).map(hash).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [a, b, c])?;
            let mut y = Tensor::zeros(device, [1, b, 1])?;
            plane_hashes::<3, 4, 5>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Mean and place of the largest element over two axes of three, and the parity of all bits.
#[tile_kernel]
fn over_several_axes<const A: usize, const B: usize, const C: usize>(
    x: &Tensor<f32, A, B, C>,
    y: &mut Tensor<f32, A, B, C>,
) {
    let x = x.partition_view([A, B, C]);
    let mut y = y.partition_view_mut([A, B, C]);
    let x = x.load_masked([0, 0, 0]);
    let place = x.argmax([0, 2]).cast::<f32>();
    let parity = x.cast::<i32>().reduce_xor([0, 1, 2]) & 1;
    let total = x.mean([1, 2]) + place * 100.0 + parity.cast::<f32>() * 10000.0;
    y.store_masked(total.broadcast([A, B, C]));
}

#[test]
fn reductions_over_several_axes_agree_with_loops() {
    let [a, b, c] = [3, 4, 8];
    let at = |i: usize, j: usize, k: usize| (i * b + j) * c + k;
    let x: Vec<f32> = (0..a * b * c).map(|i| ((i * 37 + 11) % 64) as f32).collect();
    let parity = x.iter().fold(0, |parity, &x| parity ^ x as i32) & 1;
    let mut expected = Vec::new();
    for (i, j) in (0..a).flat_map(|i| (0..b).map(move |j| (i, j))) {
        let plane = (0..b).flat_map(|j| (0..c).map(move |k| (j, k)));
        let mean = plane.map(|(j, k)| f64::from(x[at(i, j, k)])).sum::<f64>() / (b * c) as f64;
        let (mut place, mut largest) = (0, f32::NEG_INFINITY);
        for (i, k) in (0..a).flat_map(|i| (0..c).map(move |k| (i, k))) {
            if x[at(i, j, k)] > largest {
                (place, largest) = (i * c + k, x[at(i, j, k)]);
            }
        }
        expected.extend(vec![mean + place as f64 * 100.0 + f64::from(parity) * 10000.0; c]);
    }
    Case {
        ir: over_several_axes::ir(),
        bindings: &[("A", Binding::Const(a)), ("B", Binding::Const(b)), ("C", Binding::Const(c))],
        arguments: vec![array(&x, &[a, b, c]), array(&vec![0f32; a * b * c], &[a, b, c])],
        output: 1,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [a, b, c])?;
            let mut y = Tensor::zeros(device, [a, b, c])?;
            over_several_axes::<3, 4, 8>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// The `K` largest of each row and where they are, with rows of any length in tiles.
#[tile_kernel]
fn largest<T: Number, const N: usize, const K: usize>(
    x: &Tensor<T, m, N>,
    values: &mut Tensor<T, m, K>,
    places: &mut Tensor<i32, m, K>,
    ascending: &mut Tensor<T, m, N>,
) {
    let x = x.partition_view([2, N]);
    let mut values = values.partition_view_mut([2, K]);
    let mut places = places.partition_view_mut([2, K]);
    let mut ascending = ascending.partition_view_mut([2, N]);
    let [i, _] = values.index();
    let x = x.load_masked([i, 0]);
    let (top, at) = x.top_k(K, 1);
    values.store_masked(top);
    places.store_masked(at);
    ascending.store_masked(x.sort(1));
}

#[test]
fn the_largest_agree_with_a_sort() {
    let (m, n, k) = (3, 19, 5);
    let mut x = numbers::<f32>(m * n, 8);
    for (place, value) in [(0, -0.0), (7, 0.0), (3, f32::NAN), (n + 2, f32::INFINITY), (n + 9, f32::NAN)] {
        x[place] = value;
    }
    // NaN above all, ties by place.
    let above = |a: f32, b: f32| a > b || a.is_nan() && !b.is_nan();
    let (mut top, mut at, mut sorted) = (Vec::new(), Vec::new(), Vec::new());
    for row in x.chunks(n) {
        let rank = |i: usize, above: &dyn Fn(f32, f32) -> bool| {
            let before = |&j: &usize| above(row[j], row[i]) || j < i && !above(row[i], row[j]);
            (0..n).filter(before).count()
        };
        let in_order = |above: &dyn Fn(f32, f32) -> bool| {
            let mut order = vec![0; n];
            (0..n).for_each(|i| order[rank(i, above)] = i);
            order
        };
        let descending = in_order(&above);
        top.extend(descending[..k].iter().map(|&i| f64::from(row[i])));
        at.extend(descending[..k].iter().map(|&i| i as f64));
        sorted.extend(in_order(&|a, b| above(b, a)).into_iter().map(|i| f64::from(row[i])));
    }
    for (output, expected) in [(1, top), (2, at), (3, sorted)] {
        Case {
            ir: largest::ir(),
            bindings: &[
                ("T", Binding::Elem(tile::ir::DType::F32)),
                ("N", Binding::Const(n)),
                ("K", Binding::Const(k)),
            ],
            arguments: vec![
                array(&x, &[m, n]),
                array(&vec![0f32; m * k], &[m, k]),
                array(&vec![0i32; m * k], &[m, k]),
                array(&vec![0f32; m * n], &[m, n]),
            ],
            output,
            expected,
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [m, n])?;
                let (mut values, mut places) =
                    (Tensor::<f32>::zeros(device, [m, k])?, Tensor::zeros(device, [m, k])?);
                let mut ascending = Tensor::<f32>::zeros(device, [m, n])?;
                largest::<f32, 19, 5>(&x, &mut values, &mut places, &mut ascending).launch()?;
                match output {
                    1 => Ok(widen(&values.to_vec()?)),
                    2 => Ok(widen(&places.to_vec()?)),
                    _ => Ok(widen(&ascending.to_vec()?)),
                }
            },
        }
        .check();
    }
}

/// Counts of a tensor's values over all of its tiles.
#[tile_kernel]
fn counts<const BINS: usize>(x: &Tensor<i16, m, n>, y: &mut Tensor<i32, BINS>) {
    let x = x.partition_view([4, 8]);
    let mut y = y.partition_view_mut([BINS]);
    let mut total = Tile::zeros([BINS]);
    for i in 0..x.tiles(0) {
        for j in 0..x.tiles(1) {
            total += x.load_masked_or(-1, [i, j]).histogram(BINS);
        }
    }
    y.store_masked(total);
}

#[test]
fn counts_agree_with_loops() {
    let (m, n) = (9, 21);
    let x: Vec<i16> = (0..m * n).map(|i| ((i * i * 31 + i) % 17) as i16 - 3).collect();
    let mut expected = vec![0.0; 11];
    for &x in &x {
        if (0..11).contains(&x) {
            expected[x as usize] += 1.0;
        }
    }
    Case {
        ir: counts::ir(),
        bindings: &[("BINS", Binding::Const(11))],
        arguments: vec![array(&x, &[m, n]), array(&[0i32; 11], &[11])],
        output: 1,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [11])?;
            counts::<11>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// What stands out of a line: closures of folds, in a kernel and in a function, that leave early.
#[tile_fn]
fn last_beyond(x: Tile<f32, 2>, bound: f32) -> Tile<f32, 2> {
    reduce(x, 1, 0.0, |seen, x| {
        if x > bound {
            return x;
        }
        seen
    })
}

#[tile_kernel]
fn outstanding<const B: usize>(x: &Tensor<f32, m, B>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, 1]);
    let [i, _] = y.index();
    let x = x.load([i, 0]);
    let place = Tile::<i32, 2>::iota([1, B], 1);
    let (_, at) = reduce((x, place), 1, (-10.0, -1), |(a, i), (b, j)| {
        let closer = if b > 6.0 {
            return (a, i);
        } else {
            b
        };
        if closer <= a {
            return (a, i);
        }
        (b, j)
    });
    y.store(last_beyond(x, 1.5) * 10.0 + at.cast::<f32>());
}

#[test]
fn closures_of_folds_leave_early() {
    let x = [[1.0f32, 2.0, 7.0, 3.0], [0.0, -1.0, 0.5, 1.0], [6.0, 9.0, 8.0, 6.0]];
    check_exact!(outstanding<B = 4>(x: x.concat(), [3, 4]) -> f32, [3, 1] => [33.0f32, 3.0, 60.0]);
}

/// What the folds below carry of a part of a line: its sum, exclusive or, largest, smallest, product, bitwise and, and two
/// numbers whose order counts.
#[tile_fn]
fn joined(
    (sum, odd, largest, smallest, product, common, power, hash): (i32, i32, i32, i32, i32, i32, i32, i32),
    right: (i32, i32, i32, i32, i32, i32, i32, i32),
) -> (i32, i32, i32, i32, i32, i32, i32, i32) {
    let (s, o, l, m, p, c, w, h) = right;
    (sum + s, odd ^ o, max(largest, l), min(smallest, m), product * p, common & c, power * w, hash * w + h)
}

/// Eight tiles at once: all partial results, those of a chain and the exclusive ones from the end, and the last of both kinds.
#[tile_kernel]
fn eight_together<const B: usize>(
    x: &Tensor<i32, m, B>,
    chain: &mut Tensor<i32, m, 8, B>,
    scans: &mut Tensor<i32, m, 16, B>,
    results: &mut Tensor<i32, m, 16, 1>,
) {
    let mut chain = chain.partition_view_mut([1, 8, B]);
    let mut scans = scans.partition_view_mut([1, 16, B]);
    let mut results = results.partition_view_mut([1, 16, 1]);
    let [i, ..] = chain.index();
    let x = x.partition_view([1, B]).load([i, 0]);
    let tiles = (x, x, x, x, x, x, Tile::full([1, B], 31), x);
    let start = (0, 0, i32::MIN, i32::MAX, 1, -1, 1, 0);
    let (a, b, c, d, e, f, g, h) = scan(tiles, 1, start, |left, right| joined(left, right));
    chain.store(stack([a, b, c, d, e, f, g, h], 1));
    let (a, b, c, d, e, f, g, h) = associative_scan(tiles, 1, start, |left, right| joined(left, right));
    let up = stack([a, b, c, d, e, f, g, h], 1);
    let (a, b, c, d, e, f, g, h) =
        associative_scan_exclusive_reverse(tiles, 1, start, |left, right| joined(left, right));
    scans.store(cat([up, stack([a, b, c, d, e, f, g, h], 1)], 1));
    let (a, b, c, d, e, f, g, h) = reduce(tiles, 1, start, |left, right| joined(left, right));
    let one = stack([a, b, c, d, e, f, g, h], 1);
    let (a, b, c, d, e, f, g, h) = associative_reduce(tiles, 1, start, |left, right| joined(left, right));
    results.store(cat([one, stack([a, b, c, d, e, f, g, h], 1)], 1));
}

#[test]
fn eight_tiles_are_folded_together() {
    let (m, n) = (3, 150);
    let x: Vec<i32> = (0..m * n).map(|i| (i as i32).wrapping_mul(0x9e37_79b9_u32 as i32) >> 3).collect();
    let start = [0, 0, i32::MIN, i32::MAX, 1, -1, 1, 0];
    let join = |a: [i32; 8], x: i32| {
        let hash = a[7].wrapping_mul(31).wrapping_add(x);
        let (sum, product) = (a[0].wrapping_add(x), a[4].wrapping_mul(x));
        [sum, a[1] ^ x, a[2].max(x), a[3].min(x), product, a[5] & x, a[6].wrapping_mul(31), hash]
    };
    let (mut chain, mut scans, mut results) = (vec![], vec![], vec![]);
    for row in x.chunks(n) {
        let up: Vec<[i32; 8]> = row
            .iter()
            .scan(start, |all, &x| {
                *all = join(*all, x);
                Some(*all)
            })
            .collect();
        let mut down: Vec<[i32; 8]> =
            row.iter().rev().scan(start, |all, &x| Some(std::mem::replace(all, join(*all, x)))).collect();
        down.reverse();
        let lines =
            |of: &[[i32; 8]]| -> Vec<i32> { (0..8).flat_map(|k| of.iter().map(move |all| all[k])).collect() };
        chain.extend(lines(&up));
        scans.extend([lines(&up), lines(&down)].concat());
        results.extend([up[n - 1], up[n - 1]].concat());
    }
    check_kernel!(eight_together<B = 150>(
        input x: (x, [m, n]),
        output chain: (vec![0i32; chain.len()], [m, 8, n] => chain, 0.0),
        output scans: (vec![0i32; scans.len()], [m, 16, n] => scans, 0.0),
        output results: (vec![0i32; results.len()], [m, 16, 1] => results, 0.0),
    ));
}
