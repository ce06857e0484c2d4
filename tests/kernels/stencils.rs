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

/// Several steps of heat that spreads in space, in one launch: a box is loaded with a margin for each of them, and nothing
/// is outside of the space.
#[tile_kernel]
fn heat<const D: usize, const H: usize, const W: usize, const STEPS: usize>(
    u: &Tensor<f32, d, h, w>,
    k: f32,
    y: &mut Tensor<f32, d, h, w>,
) {
    let mut y = y.partition_view_mut([D, H, W]);
    let [a, b, c] = y.index();
    let shape = [D + 2 * STEPS, H + 2 * STEPS, W + 2 * STEPS];
    let boxes = u.pad([(STEPS, STEPS), (STEPS, STEPS), (STEPS, STEPS)]).strided_view(shape, [D, H, W]);
    let mut t = boxes.load_masked([a, b, c]);
    let (first, extents) = ([a * D, b * H, c * W], [d, h, w]);
    let mut inside = Tile::full(shape, true);
    for axis in 0..3 {
        let at = Tile::<i32, 3>::iota(shape, axis) + (first[axis] as i32 - STEPS as i32);
        inside &= (at >= 0) & (at < extents[axis] as i32);
    }
    for _ in 0..STEPS {
        let mut around = -6.0 * t;
        for axis in 0..3 {
            around += t.shift(axis, 1, 0.0) + t.shift(axis, -1, 0.0);
        }
        t = select(inside, t + k * around, 0.0);
    }
    y.store_masked(t.extract([STEPS, STEPS, STEPS], [D, H, W]));
}

#[test]
fn heat_spreads_along_every_axis() {
    let [d, h, w] = [5usize, 7, 9];
    let u: Vec<f32> = numbers(d * h * w, 1);
    let mut expected = u.clone();
    for _ in 0..2 {
        let at = |place: [isize; 3]| {
            let inside = place.iter().zip([d, h, w]).all(|(&at, extent)| at >= 0 && at < extent as isize);
            let [i, j, k] = place.map(|at| at as usize);
            if inside { expected[(i * h + j) * w + k] } else { 0.0 }
        };
        let step = |place: usize| {
            let [i, j, k] = [place / (h * w), place / w % h, place % w].map(|at| at as isize);
            let around = at([i - 1, j, k])
                + at([i + 1, j, k])
                + at([i, j - 1, k])
                + at([i, j + 1, k])
                + at([i, j, k - 1])
                + at([i, j, k + 1]);
            at([i, j, k]) + 0.1 * (around - 6.0 * at([i, j, k]))
        };
        expected = (0..d * h * w).map(step).collect();
    }
    check_kernel!(heat<D = 2, H = 4, W = 4, STEPS = 2>(
        input u: (&u, [d, h, w]), number k: (0.1f32),
        output y: (&vec![0.0f32; d * h * w], [d, h, w] => &expected, 1e-5),
    ));
}

/// Weights by distance of 3 × 3 × 3 neighbours: counters of loops are starts, and index an array.
#[tile_kernel]
fn neighbourhood<const D: usize, const H: usize, const W: usize>(
    u: &Tensor<f64, d, h, w>,
    y: &mut Tensor<f64, d, h, w>,
) {
    const WEIGHTS: [f64; 4] = [0.5, 0.05, 0.01, 0.0025];
    const FAR: [usize; 3] = [1, 0, 1];
    let mut y = y.partition_view_mut([D, H, W]);
    let boxes = u.pad([(1, 1), (1, 1), (1, 1)]).strided_view([D + 2, H + 2, W + 2], [D, H, W]);
    let u = boxes.load_masked(y.index());
    let mut sum = Tile::zeros([D, H, W]);
    for i in 0..3 {
        for j in 0..3 {
            for k in (0..3).rev() {
                sum += WEIGHTS[FAR[i] + FAR[j] + FAR[k]] * u.extract([i, j, k], [D, H, W]);
            }
        }
    }
    y.store_masked(sum);
}

#[test]
fn neighbours_weigh_by_distance() {
    let [d, h, w] = [3usize, 5, 7];
    let u: Vec<f64> = numbers(d * h * w, 1);
    let sum = |place: usize| {
        let own = [place / (h * w), place / w % h, place % w];
        let other = |place: usize| {
            let other = [place / (h * w), place / w % h, place % w];
            let apart = [0, 1, 2].map(|axis| own[axis].abs_diff(other[axis]));
            let weights = [0.5, 0.05, 0.01, 0.0025];
            if apart.iter().all(|&by| by < 2) { weights[apart.iter().sum::<usize>()] * u[place] } else { 0.0 }
        };
        (0..d * h * w).map(other).sum()
    };
    let expected: Vec<f64> = (0..d * h * w).map(sum).collect();
    check_kernel!(neighbourhood<D = 2, H = 2, W = 4>(
        input u: (&u, [d, h, w]), output y: (&vec![0.0f64; d * h * w], [d, h, w] => &expected, 1e-12),
    ));
}
