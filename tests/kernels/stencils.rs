//! What is computed of the neighbours of a pixel, by windows over a margin.

use super::whole::check_kernel;
use super::{check_exact, numbers};
use tile::prelude::*;

/// A pixel of an image that is 0 around.
fn pixel(x: &[f32], [h, w]: [usize; 2], i: usize, j: usize) -> f32 {
    // Indices count from the margin.
    let inside = (1..=h).contains(&i) && (1..=w).contains(&j);
    if inside { x[(i - 1) * w + j - 1] } else { 0.0 }
}

/// A convolution of every channel with its own 3 × 3 taps, two pixels apart: a loop over the taps selects a pixel of each
/// window.
#[tile_kernel]
fn depthwise<const BH: usize, const BW: usize>(
    x: &Tensor<f32, c, h, w>,
    taps: &Tensor<f32, c, 3, 3>,
    y: &mut Tensor<f32, c, { (h - 1) / 2 + 1 }, { (w - 1) / 2 + 1 }>,
) {
    let windows = x.pad([(0, 0), (1, 1), (1, 1)]).unfold(1, 3, 2).unfold(2, 3, 2);
    let taps = taps.partition_view([1, 1, 1]);
    let mut y = y.partition_view_mut([1, BH, BW]);
    let [channel, i, j] = y.index();
    let mut sum = Tile::zeros([1, BH, BW]);
    for a in 0..3 {
        for b in 0..3 {
            let pixels = windows.select(3, a).select(3, b).partition_view([1, BH, BW]);
            sum += pixels.load_masked([channel, i, j]) * taps.load([channel, a, b]);
        }
    }
    y.store_masked(sum);
}

#[test]
fn taps_are_selected_in_loops() {
    let (c, h, w) = (2usize, 7usize, 10usize);
    let (x, taps): (Vec<f32>, Vec<f32>) = (numbers(c * h * w, 1), numbers(c * 9, 2));
    let (high, wide) = ((h - 1) / 2 + 1, (w - 1) / 2 + 1);
    let mut expected = Vec::new();
    for channel in 0..c {
        let image = &x[channel * h * w..][..h * w];
        for (i, j) in (0..high).flat_map(|i| (0..wide).map(move |j| (i, j))) {
            let places = (0..9).map(|tap| (tap, pixel(image, [h, w], 2 * i + tap / 3, 2 * j + tap % 3)));
            expected.push(places.map(|(tap, pixel)| pixel * taps[channel * 9 + tap]).sum::<f32>());
        }
    }
    check_kernel!(depthwise<BH = 2, BW = 4>(
        input x: (&x, [c, h, w]),
        input taps: (&taps, [c, 3, 3]),
        output y: (&vec![0.0f32; c * high * wide], [c, high, wide] => &expected, 1e-6),
    ));
}

/// What Winograd's convolution of 3 × 3 taps makes of an image: `Bᵀ·d·B` of squares of 4 × 4 pixels, two apart.
#[tile_kernel]
fn winograd(x: &Tensor<f32, h, w>, y: &mut Tensor<f32, { h / 2 }, { w / 2 }, 4, 4>) {
    const ROWS: [[f32; 4]; 4] =
        [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]];
    let squares = x.pad([(1, 1), (1, 1)]).unfold(0, 4, 2).unfold(1, 4, 2).partition_view([1, 1, 4, 4]);
    let mut y = y.partition_view_mut([1, 1, 4, 4]);
    let mut square = squares.load_masked(y.index()).reshape([4, 4]);
    for _ in 0..2 {
        let rows = [0, 1, 2, 3].map(|row| square.take(row, 0));
        let sums =
            ROWS.map(|weights| rows.iter().zip(weights).map(|(&row, w)| row * w).sum::<Tile<f32, 2>>());
        square = cat(sums, 0).t();
    }
    y.store(square.reshape([1, 1, 4, 4]));
}

#[test]
fn squares_of_an_image_are_transformed() {
    let (h, w) = (4usize, 6usize);
    let x: Vec<f32> = numbers(h * w, 3);
    let transformed = |d: [f32; 4]| [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]];
    let mut expected = Vec::new();
    for (i, j) in (0..h / 2).flat_map(|i| (0..w / 2).map(move |j| (i, j))) {
        let square = [0, 1, 2, 3].map(|a| [0, 1, 2, 3].map(|b| pixel(&x, [h, w], 2 * i + a, 2 * j + b)));
        let columns = [0, 1, 2, 3].map(|b| transformed([0, 1, 2, 3].map(|a| square[a][b])));
        expected
            .extend([0, 1, 2, 3].into_iter().flat_map(|a| transformed([0, 1, 2, 3].map(|b| columns[b][a]))));
    }
    check_exact!(winograd<>(x: &x, [h, w]) -> f32, [h / 2, w / 2, 4, 4] => expected);
}

/// A turn of the Game of Life, whose cells beyond the edge are dead.
#[tile_kernel]
fn life<const B: usize>(cells: &Tensor<bool, h, w>, next: &mut Tensor<bool, h, w>) {
    let around = cells.pad([(1, 1), (1, 1)]).unfold(0, 3, 1).unfold(1, 3, 1).partition_view([B, B, 3, 3]);
    let mut next = next.partition_view_mut([B, B]);
    let [i, j] = next.index();
    let alive = cells.partition_view([B, B]).load_masked([i, j]);
    let count = around.load_masked([i, j, 0, 0]).cast::<u8>().sum([2, 3]).reshape([B, B]);
    next.store_masked((count == 3) | (alive & (count == 4)));
}

#[test]
fn cells_live_and_die() {
    let (h, w) = (7usize, 9usize);
    let cells: Vec<bool> = numbers::<f32>(h * w, 4).iter().map(|&x| x > 0.0).collect();
    let image: Vec<f32> = cells.iter().map(|&cell| f32::from(u8::from(cell))).collect();
    let expected = (0..h * w).map(|at| {
        let count: f32 = (0..9).map(|k| pixel(&image, [h, w], at / w + k / 3, at % w + k % 3)).sum();
        u8::from(count == 3.0 || cells[at] && count == 4.0)
    });
    check_exact!(life<B = 4>(x: &cells, [h, w]) -> bool, [h, w] => expected.collect::<Vec<u8>>());
}
