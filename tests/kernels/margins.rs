//! Windows over margins: `unfold` of tensors that are padded or shifted.

use super::{Array, array, check_exact, compare, devices, numbers, numbers_of, widen};
use tile::ir::analysis::{Divisors, Lines};
use tile::ir::{Binding, Op, interp, specialize};
use tile::prelude::*;

/// A convolution with a margin of one and a step of two; the fourth tap is beyond the windows.
#[tile_kernel]
fn convolved<const B: usize>(
    x: &Tensor<f32, n>,
    taps: &Tensor<f32, 3>,
    y: &mut Tensor<f32, { (n - 1) / 2 + 1 }>,
) {
    let x = x.pad([(1, 1)]).unfold(0, 3, 2).partition_view([B, 4]);
    let taps = taps.partition_view([4]).load_masked([0]).unsqueeze(0);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked((x.load_masked([i, 0]) * taps).sum(1).squeeze(1));
}

#[test]
fn a_convolution_has_a_margin() {
    for n in [1usize, 2, 9, 16] {
        let x: Vec<f32> = numbers(n, 1);
        let taps = [2.0f32, -1.0, 0.5];
        let at = |i: i64| if i < 0 || i >= n as i64 { 0.0 } else { x[i as usize] };
        let expected: Vec<f32> = (0..(n - 1) / 2 + 1)
            .map(|i| taps.iter().enumerate().map(|(tap, &w)| at(2 * i as i64 + tap as i64 - 1) * w).sum())
            .collect();
        let count = expected.len();
        check_exact!(convolved<B = 4>(x: &x, [n]; taps: &taps, [3]) -> f32, [count] => expected);
    }
}

/// Windows of pixels, 3 × 3 and one apart, with a margin whose pixels are −1, turned and backwards.
#[tile_kernel]
fn patches<const B: usize>(x: &Tensor<f32, h, w>, y: &mut Tensor<f32, 3, 3, h, { w + 1 }>) {
    let x = x.pad([(1, 1), (2, 1)]).unfold(0, 3, 1).unfold(1, 3, 1).flip([2]).permute([2, 3, 0, 1]);
    let x = x.partition_view([4, 3, 2, B]);
    let mut y = y.partition_view_mut([4, 3, 2, B]);
    y.store_masked(x.load_masked_or(-1.0, y.index()));
}

#[test]
fn windows_along_several_axes_are_moved() {
    let (h, w) = (3usize, 5usize);
    let x: Vec<f32> = (0..h * w).map(|at| at as f32).collect();
    let at = |i: i64, j: i64| {
        let inside = i >= 0 && i < h as i64 && j >= 0 && j < w as i64;
        if inside { x[i as usize * w + j as usize] } else { -1.0 }
    };
    let mut expected = Vec::new();
    for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
        for (i, j) in (0..h as i64).flat_map(|i| (0..w as i64 + 1).map(move |j| (i, j))) {
            expected.push(at(i + (2 - a) - 1, j + b - 2));
        }
    }
    let shape = [3, 3, h, w + 1];
    check_exact!(patches<B = 4>(x: &x, [h, w]) -> f32, shape => expected.clone());
}

#[test]
fn rows_of_windows_are_read_as_rows() {
    let instance = specialize(&patches::ir(), &[("B".to_owned(), Binding::Const(4))]).unwrap();
    let divisors = Divisors::of(&instance);
    let gathers =
        instance.walk().into_iter().map(|op| instance.op(op)).filter(|data| data.op == Op::GatherLoad);
    let rows: Vec<_> = gathers.map(|gather| Lines::of(&instance, &divisors).row(gather, 3)).collect();
    assert_eq!(rows.iter().map(|row| row.map(|row| row.tensor_axis)).collect::<Vec<_>>(), [Some(1)]);
}

/// Sums of each element and the two before it, in a loop over tiles of windows beyond the last, too.
#[tile_kernel]
fn trailing(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>, tiles: &mut Tensor<i32, n>) {
    let windows = x.pad([(2, 0)]).unfold(0, 3, 1);
    let mut y = y.partition_view_mut([4]);
    let mut tiles = tiles.partition_view_mut([4]);
    let [i] = y.index();
    let mut sum = Tile::zeros([4, 1]);
    for j in 0..2 {
        let cut = windows.partition_view([4, 2]);
        sum += cut.load_masked([i, j]).sum(1) + cut.load_masked([i - i - 1, j]).sum(1) * 100;
        tiles.store_masked(Tile::full([4], (cut.tiles(0) * 10 + windows.extent(1)) as i32));
    }
    y.store_masked(sum.squeeze(1));
}

#[test]
fn tiles_of_windows_are_defined_everywhere() {
    let x = [1, 2, 3, 4, 5, 6];
    let (sums, counts) = ([1.0, 3.0, 6.0, 9.0, 12.0, 15.0], [23.0; 6]);
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [6]).unwrap();
        let (mut y, mut tiles) = (Tensor::zeros(&device, [6]).unwrap(), Tensor::zeros(&device, [6]).unwrap());
        trailing(&x, &mut y, &mut tiles).launch().unwrap();
        compare(label, &widen(&y.to_vec().unwrap()), &sums, 0.0);
        compare(label, &widen(&tiles.to_vec().unwrap()), &counts, 0.0);
    }
    let instance = specialize(&trailing::ir(), &[]).unwrap();
    let mut arrays: Vec<Array> = vec![array(&x, &[6]), array(&[0; 6], &[6]), array(&[0; 6], &[6])];
    interp::run(&instance, &mut arrays).unwrap();
    compare("the evaluator", &numbers_of(&arrays[1]), &sums, 0.0);
}

/// Windows of windows: three windows beside each other, of which those beyond the first and the last have no elements.
#[tile_kernel]
fn windows_of_windows<const B: usize>(x: &Tensor<f32, n>, at: usize, y: &mut Tensor<f32, n, 3, 3>) {
    let windows = x.pad([(1, 1)]).unfold(0, 3, 1).pad([(1, 1), (0, 0)]);
    let all = windows.unfold(0, 3, 1).partition_view([B, 4, 3]);
    let middle = windows.shift(1, -1).select(1, at).strided_view([B], [B + 1]);
    let mut y = y.partition_view_mut([B, 4, 3]);
    let [i, j, k] = y.index();
    let mut tile = all.load_masked_or(-7.0, [i, j, k]);
    for tap in [at + 1, at] {
        // Before tap 1 the windows are the ones above, each a place earlier; there is one element after their last.
        let column = windows.shift(1, 1).select(1, tap).partition_view([B]).load_masked([i]);
        tile += column.reshape([B, 1, 1]) * 100.0;
    }
    y.store_masked(tile + middle.load_masked_or(0.5, [i]).reshape([B, 1, 1]) * 1000.0);
}

#[test]
fn windows_have_margins_windows_and_columns() {
    let n = 7i64;
    let x: Vec<f32> = (0..n).map(|at| at as f32 + 1.0).collect();
    let element = |i: i64| if (0..n).contains(&i) { Some(x[i as usize]) } else { None };
    // Element `tap` of window `window`, of which there is one more before the first and after the last.
    let padded = |window: i64, tap: i64| {
        let exists = (1..=n).contains(&window) && (0..3).contains(&tap);
        if exists { element(window - 1 + tap - 1) } else { None }
    };
    for at in [0i64, 1, 2, 9] {
        let mut expected = Vec::new();
        for i in 0..n {
            let columns: f32 = [at + 1, at]
                .map(|tap| if tap < 3 { padded(i, tap - 1).unwrap_or(0.0) } else { 0.0 })
                .iter()
                .sum();
            // Tiles of 4 begin 5 apart.
            let window = i / 4 * 5 + i % 4;
            let middle = if at < 3 && window < n + 2 { padded(window, at + 1) } else { None };
            for (tap, inner) in (0..3).flat_map(|tap| (0..3).map(move |inner| (tap, inner))) {
                let tile = padded(i + inner, tap).unwrap_or(-7.0);
                expected.push(f64::from(tile + columns * 100.0 + middle.unwrap_or(0.5) * 1000.0));
            }
        }
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &x, [n as usize]).unwrap();
            let mut y = Tensor::<f32>::zeros(&device, [n as usize, 3, 3]).unwrap();
            windows_of_windows::<4>(&x, at as usize, &mut y).launch().unwrap();
            compare(&format!("{label}, {at}"), &widen(&y.to_vec().unwrap()), &expected, 0.0);
        }
    }
}

/// Elements of windows at given places: of a deformable convolution along a row, whose taps are chosen for each place.
#[tile_kernel]
fn chosen<const B: usize>(
    x: &Tensor<i32, m, n>,
    taps: &Tensor<i8, m, n>,
    starts: &Tensor<u64, m, n>,
    y: &mut Tensor<i32, m, n>,
) {
    let windows = x.pad([(0, 0), (2, 1)]).unfold(1, 4, 1);
    let mut y = y.partition_view_mut([2, B]);
    let [i, j] = y.index();
    let taps = taps.partition_view([2, B]).load_masked_or(-1, [i, j]);
    let starts = starts.partition_view([2, B]).load_masked([i, j]);
    let rows = Tile::<i64, 2>::iota([2, 1], 0) + (i * 2) as i64;
    let first = windows.gather((0, Tile::<i32, 2>::iota([1, B], 1), 3));
    y.store_masked(windows.gather_or(-9, (rows, starts, taps)) + first.max(1) * 100);
}

#[test]
fn elements_of_windows_are_gathered() {
    let (m, n) = (3usize, 6usize);
    let x: Vec<i32> = (0..m * n).map(|at| at as i32 + 1).collect();
    let starts: Vec<u64> =
        (0..m * n).map(|at| if at == 4 { u64::MAX } else { (at as u64 * 5) % (n as u64 + 1) }).collect();
    let taps: Vec<i8> = (0..m * n).map(|at| (at % 6) as i8 - 1).collect();
    let element = |row: usize, window: u64, tap: i64| {
        // Windows of 4 begin two places before the row and end one behind it.
        let at = i64::try_from(window).ok().filter(|&at| at < n as i64)? + tap - 2;
        ((0..4).contains(&tap) && (0..n as i64).contains(&at)).then(|| x[row * n + at as usize])
    };
    let first = (0..4u64).map(|window| element(0, window, 3).unwrap_or(0)).max().unwrap();
    let expected: Vec<f64> = (0..m * n)
        .map(|at| f64::from(element(at / n, starts[at], i64::from(taps[at])).unwrap_or(-9) + first * 100))
        .collect();
    check_exact!(
        chosen<B = 4>(x: &x, [m, n]; taps: &taps, [m, n]; starts: &starts, [m, n]) -> i32, [m, n] => expected.clone()
    );
}

#[test]
fn launches_check_that_windows_fit() {
    #[tile_kernel]
    fn wide<const SIZE: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.pad([(1, 1)]).unfold(0, SIZE, 1).partition_view([4, SIZE]);
        let mut y = y.partition_view_mut([4]);
        let [i] = y.index();
        y.store_masked(x.load_masked([i, 0]).sum(1).squeeze(1));
    }
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    wide::<5>(&x, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [6.0, 0.0, 0.0]);
    let message = wide::<6>(&x, &mut y).launch().unwrap_err().to_string();
    assert!(
        message.contains(
            "`unfold` of axis 0 of a view of `x`: windows of 6 elements don't fit, it has 5 (n + 2)"
        ),
        "{message}"
    );
    assert!(specialize(&wide::ir(), &[("SIZE".to_owned(), Binding::Const(5))]).is_ok());
}

/// Sums of windows, each where a parameter or an argument asks for it.
#[tile_kernel]
fn summed<const WIDE: bool, const D: usize>(
    x: &Tensor<f32, n>,
    more: Option<&Tensor<f32, n>>,
    y: &mut Tensor<f32, n>,
) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let mut sums = Tile::zeros([4]);
    if WIDE {
        let windows = x.pad([(1, 1)]).unfold(0, 9, 1).partition_view([4, 16]);
        sums += windows.load_masked([i, 0]).sum(1).squeeze(1);
    }
    if D > 4 {
        let windows = x.shift(0, 1).unfold(0, D, 1).partition_view([4, D]);
        sums += windows.load_masked([i, 0]).sum(1).squeeze(1);
    }
    if let Some(more) = more {
        let groups = more.pad([(0, 1)]).unfold(0, 2, 1).unflatten(0, [n / 2, 2]).select(1, 0);
        sums += groups.partition_view([4, 2]).load_masked([i, 0]).sum(1).squeeze(1);
    }
    y.store_masked(sums);
}

#[test]
fn windows_of_a_branch_that_is_not_taken_fit_anything() {
    let refusal = |error: tile::Error| error.to_string();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2]).unwrap();
        let mut y = Tensor::<f32>::zeros(&device, [2]).unwrap();
        summed::<false, 4>(&x, None, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [0.0; 2], "{label}");
        let message = refusal(summed::<true, 4>(&x, None, &mut y).launch().unwrap_err());
        assert!(message.contains("windows of 9 elements don't fit, it has 4 (n + 2)"), "{label}: {message}");
        let message = refusal(summed::<false, 5>(&x, None, &mut y).launch().unwrap_err());
        assert!(message.contains("windows of 5 elements don't fit, it has 2 (n)"), "{label}: {message}");
        let paired = |n: usize| {
            let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0][..n], [n]).unwrap();
            let mut y = Tensor::<f32>::zeros(&device, [n]).unwrap();
            let launched = summed::<false, 4>(&x, Some(&x), &mut y).launch();
            launched.map(|()| y.to_vec().unwrap())
        };
        assert_eq!(paired(4).unwrap(), [3.0, 7.0, 0.0, 0.0], "{label}");
        let message = refusal(paired(3).unwrap_err());
        assert!(
            message.contains("`unflatten` of axis 0 of a view of `more`: it has 3 (n)"),
            "{label}: {message}"
        );
    }
}

/// The sum of each window of a view, which brings the next tile near.
#[tile_fn]
fn sums_of<const B: usize>(windows: &PartitionView<'_, f32, 2>, i: usize) -> Tile<f32, 1> {
    windows.prefetch([i + 1, 0]);
    windows.load_masked([i, 0]).sum(1).squeeze(1)
}

#[tile_kernel]
fn summed_by_a_function<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let margin = x.pad([(1, 1)]).unfold(0, 3, 1).partition_view([B, 4]).latency(2).bulk_copy(false);
    let padded = x.pad([(0, 2)]);
    let last = padded.unfold(0, 2, 1).partition_view([B, 4]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let sums = |windows: PartitionView<'_, f32, 2>| sums_of::<B>(&windows, i);
    y.store_masked(sums(margin) + sums_of::<B>(&last, i) * 100.0);
}

#[test]
fn functions_take_views_of_windows() {
    let n = 7i32;
    let x: Vec<f32> = (0..n).map(|i| (i * 3 % 5) as f32).collect();
    let at = |i: i32| if (0..n).contains(&i) { x[i as usize] } else { 0.0 };
    let expected = (0..n).map(|i| at(i - 1) + at(i) + at(i + 1) + 100.0 * (at(i) + at(i + 1)));
    check_exact!(summed_by_a_function<B = 4>(x: &x, [7]) -> f32, [7] => expected);
}
