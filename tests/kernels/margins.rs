//! Windows over margins: `unfold` of tensors that are padded or shifted.

use super::{Array, array, check_exact, compare, devices, numbers, numbers_of, widen};
use tile::ir::{Binding, interp, specialize};
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
    assert!(message.contains("needs `SIZE <= n + 2`") && message.contains("n = 3"), "{message}");
    assert!(specialize(&wide::ir(), &[("SIZE".to_owned(), Binding::Const(5))]).is_ok());
}
