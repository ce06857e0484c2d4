//! Neighbours beyond the border of a tensor, gathered from where it goes on: its last row and column again, its other side, or
//! its mirror image.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// The sum of nine pixels, of those outside the nearest inside.
#[tile_kernel]
fn box_blur<const BM: usize, const BN: usize>(x: &Tensor<f32, h, w>, y: &mut Tensor<f32, h, w>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let rows = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let columns = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
    let mut sum = Tile::zeros([BM, BN]);
    for dy in [-1, 0, 1] {
        for dx in [-1, 0, 1] {
            let row = (rows + dy).clamp(0, h as i32 - 1);
            sum += x.gather([row, (columns + dx).clamp(0, w as i32 - 1)]);
        }
    }
    y.store_masked(sum);
}

/// The Laplacian of a grid that is closed to a torus.
#[tile_kernel]
fn laplacian<const BM: usize, const BN: usize>(x: &Tensor<f32, h, w>, y: &mut Tensor<f32, h, w>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let rows = Tile::<i64, 2>::iota([BM, 1], 0) + (i * BM) as i64;
    let columns = Tile::<i64, 2>::iota([1, BN], 1) + (j * BN) as i64;
    let (height, width) = (h as i64, w as i64);
    let vertical =
        x.gather([(rows - 1).rem_euclid(height), columns]) + x.gather([(rows + 1) % height, columns]);
    let left = x.gather([rows, (columns + (width - 1)) % width]);
    let horizontal = left + x.gather([rows, (columns + 1) % width]);
    let middle = x.partition_view([BM, BN]).load_masked([i, j]);
    y.store_masked(vertical + horizontal - middle * 4.0);
}

/// What the nine directions of a lattice have in common (D2Q9: Qian, d'Humières and Lallemand, "Lattice BGK Models for
/// Navier-Stokes Equation", 1992), and a step of the method.
#[tile_kernels]
mod lattice {
    use tile::prelude::*;

    pub(super) const X: [i32; 9] = [0, 1, 0, -1, 0, 1, -1, -1, 1];
    pub(super) const Y: [i32; 9] = [0, 0, 1, 0, -1, 1, 1, -1, -1];
    pub(super) const WEIGHTS: [f32; 9] = [
        16.0 / 36.0,
        4.0 / 36.0,
        4.0 / 36.0,
        4.0 / 36.0,
        4.0 / 36.0,
        1.0 / 36.0,
        1.0 / 36.0,
        1.0 / 36.0,
        1.0 / 36.0,
    ];

    /// A step of the lattice Boltzmann method on a torus: what streams in from the neighbours collides.
    #[tile_kernel]
    pub(super) fn collide<const BM: usize, const BN: usize>(
        f: &Tensor<f32, 9, h, w>,
        g: &mut Tensor<f32, 9, h, w>,
        relaxation: f32,
    ) {
        let mut g = g.partition_view_mut([1, BM, BN]).spanning([0]);
        let [_, i, j] = g.index();
        let (height, width) = (h as i32, w as i32);
        let rows = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
        let columns = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let streamed = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|q| {
            let row = (rows + (height - Y[q])) % height;
            f.select(0, q).gather([row, (columns + (width - X[q])) % width])
        });
        let density = streamed.iter().sum::<Tile<f32, 2>>();
        let along_x = streamed.iter().zip(X).map(|(&f, x)| f * x as f32).sum::<Tile<f32, 2>>() / density;
        let along_y = streamed.iter().zip(Y).map(|(&f, y)| f * y as f32).sum::<Tile<f32, 2>>() / density;
        let energy = 1.0 - 1.5 * (along_x * along_x + along_y * along_y);
        for q in 0..9 {
            let along = along_x * X[q] as f32 + along_y * Y[q] as f32;
            let rest = density * WEIGHTS[q] * (energy + 3.0 * along + 4.5 * along * along);
            g.at([q]).store_masked((streamed[q] + (rest - streamed[q]) * relaxation).unsqueeze(0));
        }
    }
}
use lattice::{WEIGHTS, X, Y, collide};

/// Three numbers of a line joined; beyond its ends it is mirrored.
#[tile_kernel]
fn smoothed<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let places = Tile::<i32, 1>::iota([B], 0) + (i * B) as i32;
    let last = n as i32 - 1;
    let mut sum = Tile::zeros([B]);
    for (by, weight) in [(-3, 0.25f32), (0, 0.5), (5, 0.25)] {
        let place = abs(places + by);
        sum += x.gather([select(place > last, 2 * last - place, place)]) * weight;
    }
    y.store_masked(sum);
}

const SHAPES: [[usize; 2]; 4] = [[5, 150], [3, 50], [1, 64], [7, 67]];

#[test]
fn the_nearest_pixel_inside_stands_for_those_outside() {
    for [h, w] in SHAPES {
        let x: Vec<f32> = numbers(h * w, 1);
        let near = |i: usize, by: usize, n: usize| (i + by).saturating_sub(1).min(n - 1);
        let pixel = |i: usize, j: usize| {
            let taps = (0..9).map(|tap| x[near(i, tap / 3, h) * w + near(j, tap % 3, w)]);
            taps.sum::<f32>()
        };
        let expected: Vec<f32> = (0..h * w).map(|place| pixel(place / w, place % w)).collect();
        check_kernel!(box_blur<BM = 4, BN = 64>(
            input x: (&x, [h, w]),
            output y: (&vec![0.0f32; h * w], [h, w] => &expected, 1e-5),
        ));
    }
}

#[test]
fn a_grid_may_be_closed_to_a_torus() {
    for [h, w] in SHAPES {
        let x: Vec<f32> = numbers(h * w, 2);
        let at = |i: usize, j: usize| x[i % h * w + j % w];
        let point = |i: usize, j: usize| {
            let around = at(i + h - 1, j) + at(i + 1, j) + (at(i, j + w - 1) + at(i, j + 1));
            around - at(i, j) * 4.0
        };
        let expected: Vec<f32> = (0..h * w).map(|place| point(place / w, place % w)).collect();
        check_kernel!(laplacian<BM = 4, BN = 64>(
            input x: (&x, [h, w]),
            output y: (&vec![0.0f32; h * w], [h, w] => &expected, 1e-5),
        ));
    }
}

#[test]
fn what_streams_around_a_torus_collides() {
    for [h, w] in SHAPES {
        let noise: Vec<f32> = numbers(9 * h * w, 4);
        let f: Vec<f32> =
            (0..9 * h * w).map(|place| WEIGHTS[place / (h * w)] * (1.0 + 0.1 * noise[place])).collect();
        let mut expected = vec![0.0f64; 9 * h * w];
        for (i, j) in (0..h).flat_map(|i| (0..w).map(move |j| (i, j))) {
            let from =
                |place: usize, by: i32, size: usize| (place as i32 - by).rem_euclid(size as i32) as usize;
            let streamed: Vec<f64> =
                (0..9).map(|q| f64::from(f[(q * h + from(i, Y[q], h)) * w + from(j, X[q], w)])).collect();
            let density: f64 = streamed.iter().sum();
            let along = |directions: [i32; 9]| {
                streamed.iter().zip(directions).map(|(f, by)| f * f64::from(by)).sum::<f64>() / density
            };
            let (x, y) = (along(X), along(Y));
            for q in 0..9 {
                let along = x * f64::from(X[q]) + y * f64::from(Y[q]);
                let factor = 1.0 + 3.0 * along + 4.5 * along * along - 1.5 * (x * x + y * y);
                let rest = density * f64::from(WEIGHTS[q]) * factor;
                expected[(q * h + i) * w + j] = streamed[q] + 0.6 * (rest - streamed[q]);
            }
        }
        check_kernel!(collide<BM = 4, BN = 64>(
            input f: (&f, [9, h, w]),
            output g: (&vec![0.0f32; 9 * h * w], [9, h, w] => &expected, 1e-5),
            number relaxation: (0.6f32),
        ));
    }
}

#[test]
fn a_line_may_be_mirrored_at_its_ends() {
    for n in [20usize, 100, 128, 131] {
        let x: Vec<f32> = numbers(n, 3);
        let mirrored = |place: isize| {
            let place = place.unsigned_abs();
            x[if place > n - 1 { 2 * (n - 1) - place } else { place }]
        };
        let joined = |i: isize| mirrored(i - 3) * 0.25 + mirrored(i) * 0.5 + mirrored(i + 5) * 0.25;
        let expected: Vec<f32> = (0..n as isize).map(joined).collect();
        check_kernel!(smoothed<B = 64>(
            input x: (&x, [n]),
            output y: (&vec![0.0f32; n], [n] => &expected, 1e-6),
        ));
    }
}
