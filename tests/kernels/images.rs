//! Kernels of images and grids: convolutions, pooling, sampling between pixels, a stencil with its halo.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// A 3×3 convolution with a margin of one pixel, channels last: nine products with tiles that begin at any pixel.
#[tile_kernel]
fn convolution<const BW: usize, const BO: usize, const BC: usize>(
    x: &Tensor<f32, b, h, w, c>,
    weights: &Tensor<f32, 3, 3, c, o>,
    y: &mut Tensor<f32, b, h, w, o>,
) {
    let x = x.pad([(0, 0), (1, 1), (1, 1), (0, 0)]).strided_view([1, 1, BW, BC], [1, 1, 1, BC]);
    let weights = weights.partition_view([1, 1, BC, BO]);
    let mut y = y.partition_view_mut([1, 1, BW, BO]);
    let [b, i, j, o] = y.index();
    let mut acc = Tile::zeros([BW, BO]);
    for di in 0..3 {
        for dj in 0..3 {
            for p in 0..weights.tiles(2) {
                let pixels = x.load_masked([b, i + di, j * BW + dj, p]).reshape([BW, BC]);
                acc = mma(pixels, weights.load_masked([di, dj, p, o]).reshape([BC, BO]), acc);
            }
        }
    }
    y.store_masked(acc.reshape([1, 1, BW, BO]));
}

/// The same with pixels S apart, which are gathered: `i·w + j` of the output is one axis.
#[tile_kernel]
fn convolution_by_steps<const S: usize, const BM: usize, const BO: usize, const BC: usize>(
    x: &Tensor<f32, b, h, w, c>,
    weights: &Tensor<f32, 3, 3, c, o>,
    y: &mut Tensor<f32, b, { h.div_ceil(S) }, { w.div_ceil(S) }, o>,
) {
    let weights = weights.partition_view([1, 1, BC, BO]);
    let (height, width) = (h.div_ceil(S) as i32, w.div_ceil(S) as i32);
    let mut y = y.flatten(0, 2).partition_view_mut([BM, BO]);
    let [i, o] = y.index();
    let pixel = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let image = pixel / (height * width);
    let (row, column) = (pixel / width % height * S as i32, pixel % width * S as i32);
    let mut acc = Tile::zeros([BM, BO]);
    for p in 0..weights.tiles(2) {
        let channel = Tile::<i32, 2>::iota([1, BC], 1) + (p * BC) as i32;
        for di in 0..3 {
            for dj in 0..3 {
                let pixels = x.gather([image, row + (di as i32 - 1), column + (dj as i32 - 1), channel]);
                acc = mma(pixels, weights.load_masked([di, dj, p, o]).reshape([BC, BO]), acc);
            }
        }
    }
    y.store_masked(acc);
}

/// Pixel (i, j), or nothing beside the image.
fn pixel([h, w]: [usize; 2], i: isize, j: isize) -> Option<usize> {
    let (i, j) = (usize::try_from(i).ok()?, usize::try_from(j).ok()?);
    (i < h && j < w).then_some(i * w + j)
}

#[test]
fn convolutions_with_a_margin() {
    let [b, h, w, c, o] = [2, 7, 9, 20, 10];
    let x = numbers::<f32>(b * h * w * c, 1);
    let weights = numbers::<f32>(9 * c * o, 2);
    let expected = |step: usize| {
        let (height, width) = (h.div_ceil(step), w.div_ceil(step));
        let mut y = vec![0.0f64; b * height * width * o];
        for (at, y) in y.iter_mut().enumerate() {
            let (channel, place, image) = (at % o, at / o % (height * width), at / o / (height * width));
            for tap in 0..9 {
                let [i, j] = [(place / width * step + tap / 3), (place % width * step + tap % 3)];
                let Some(pixel) = pixel([h, w], i as isize - 1, j as isize - 1) else { continue };
                for p in 0..c {
                    let value = x[(image * h * w + pixel) * c + p];
                    *y += f64::from(value * weights[(tap * c + p) * o + channel]);
                }
            }
        }
        y
    };
    let one = expected(1);
    check_kernel!(convolution<BW = 8, BO = 16, BC = 16>(
        input x: (x, [b, h, w, c]), input weights: (weights, [3, 3, c, o]),
        output y: (vec![0f32; one.len()], [b, h, w, o] => one, 1e-5),
    ));
    let two = expected(2);
    check_kernel!(convolution_by_steps<S = 2, BM = 16, BO = 16, BC = 16>(
        input x: (x, [b, h, w, c]), input weights: (weights, [3, 3, c, o]),
        output y: (vec![0f32; two.len()], [b, 4, 5, o] => two, 1e-5),
    ));
}

/// The convolution that libraries offer: channels first, G groups of them, taps D apart, pixels S apart, a margin P. Taps of
/// all of a group's channels are one axis, and so are pixels, which are gathered.
#[tile_kernel]
fn grouped_convolution<
    const G: usize,
    const S: usize,
    const D: usize,
    const P: usize,
    const BO: usize,
    const BP: usize,
    const BK: usize,
>(
    x: &Tensor<f32, b, c, h, w>,
    weights: &Tensor<f32, o, inputs, kh, kw>,
    y: &mut Tensor<
        f32,
        b,
        o,
        { (h + 2 * P - D * (kh - 1) - 1) / S + 1 },
        { (w + 2 * P - D * (kw - 1) - 1) / S + 1 },
    >,
) {
    let width = ((w + 2 * P - D * (kw - 1) - 1) / S + 1) as i32;
    let weights = weights.unflatten(0, [G, o / G]).flatten(2, 4).partition_view([1, BO, BK]);
    let mut y = y.unflatten(1, [G, o / G]).flatten(3, 4).partition_view_mut([1, 1, BO, BP]);
    let [image, group, i, j] = y.index();
    let pixel = Tile::<i32, 2>::iota([1, BP], 1) + (j * BP) as i32;
    let (row, column) = (pixel / width * S as i32 - P as i32, pixel % width * S as i32 - P as i32);
    let mut acc = Tile::zeros([BO, BP]);
    for p in 0..weights.tiles(2) {
        let tap = Tile::<i32, 2>::iota([BK, 1], 0) + (p * BK) as i32;
        // Behind the last channel weights are 0.
        let channel = tap / (kh * kw) as i32 + (group * inputs) as i32;
        let (down, across) = (tap / kw as i32 % kh as i32 * D as i32, tap % kw as i32 * D as i32);
        let pixels = x.gather((image, channel, row + down, column + across));
        acc = mma(weights.load_masked([group, i, p]).squeeze(0), pixels, acc);
    }
    y.store_masked(acc.reshape([1, 1, BO, BP]));
}

#[test]
fn convolutions_have_groups_steps_and_margins() {
    let [b, c, h, w, o, kh, kw] = [2usize, 6, 7, 9, 12, 3, 2];
    let x = numbers::<f32>(b * c * h * w, 11);
    macro_rules! check {
        ($groups:literal, $step:literal, $distance:literal, $margin:literal) => {{
            let inputs = c / $groups;
            let weights = numbers::<f32>(o * inputs * kh * kw, 12);
            let extent = |size: usize, taps: usize| (size + 2 * $margin - $distance * (taps - 1) - 1) / $step + 1;
            let (height, width) = (extent(h, kh), extent(w, kw));
            let mut y = vec![0.0f64; b * o * height * width];
            for (at, y) in y.iter_mut().enumerate() {
                let (i, j, out, image) = (
                    at / width % height * $step,
                    at % width * $step,
                    at / (height * width) % o,
                    at / (height * width * o),
                );
                for tap in 0..inputs * kh * kw {
                    let (row, column) = (i + tap / kw % kh * $distance, j + tap % kw * $distance);
                    let Some(pixel) =
                        pixel([h, w], row as isize - $margin, column as isize - $margin) else { continue };
                    let channel = image * c + out / (o / $groups) * inputs + tap / (kh * kw);
                    *y += f64::from(x[channel * h * w + pixel] * weights[out * inputs * kh * kw + tap]);
                }
            }
            check_kernel!(grouped_convolution<G = $groups, S = $step, D = $distance, P = $margin, BO = 8, BP = 16, BK = 8>(
                input x: (x, [b, c, h, w]), input weights: (weights, [o, inputs, kh, kw]),
                output y: (vec![0f32; y.len()], [b, o, height, width] => y, 1e-5),
            ));
        }};
    }
    check!(1, 1, 1, 1);
    check!(2, 2, 1, 0);
    check!(3, 1, 2, 2);
}

/// The largest of 3×3 pixels, two apart, with a margin: tiles overlap, and pairs of rows and columns are joined.
#[tile_kernel]
fn max_pool<const H: usize, const W: usize>(
    x: &Tensor<f32, c, h, w>,
    y: &mut Tensor<f32, c, { h.div_ceil(2) }, { w.div_ceil(2) }>,
) {
    let x = x.pad([(0, 0), (1, 1), (1, 1)]).strided_view([1, 2 * H + 2, 2 * W + 2], [1, 2 * H, 2 * W]);
    let mut y = y.partition_view_mut([1, H, W]);
    let pixels = x.load_masked_or(f32::NEG_INFINITY, y.index()).reshape([H + 1, 2, W + 1, 2]);
    // The first of the next pair is the third pixel.
    let rows = max(
        pixels.max(1).extract([0, 0, 0, 0], [H, 1, W + 1, 2]),
        pixels.extract([1, 0, 0, 0], [H, 1, W + 1, 2]),
    );
    let both = max(rows.max(3).extract([0, 0, 0, 0], [H, 1, W, 1]), rows.extract([0, 0, 1, 0], [H, 1, W, 1]));
    y.store_masked(both.reshape([1, H, W]));
}

/// An image in another size: each pixel from its four neighbours.
#[tile_kernel]
fn resize<const H: usize, const W: usize>(x: &Tensor<f32, c, h, w>, y: &mut Tensor<f32, c, height, width>) {
    let mut y = y.partition_view_mut([1, H, W]);
    let [c, i, j] = y.index();
    let row = (Tile::<f32, 2>::iota([H, 1], 0) + (i * H) as f32 + 0.5) * (h as f32 / height as f32) - 0.5;
    let column = (Tile::<f32, 2>::iota([1, W], 1) + (j * W) as f32 + 0.5) * (w as f32 / width as f32) - 0.5;
    let (row, column) = (max(row, 0.0), max(column, 0.0));
    let (top, left) = (row.cast::<i32>(), column.cast::<i32>());
    let (bottom, right) = (min(top + 1, h as i32 - 1), min(left + 1, w as i32 - 1));
    let (down, across) = (row - top.cast::<f32>(), column - left.cast::<f32>());
    let image = x.select(0, c);
    let above = image.gather([top, left]) * (1.0 - across) + image.gather([top, right]) * across;
    let below = image.gather([bottom, left]) * (1.0 - across) + image.gather([bottom, right]) * across;
    y.store_masked((above * (1.0 - down) + below * down).unsqueeze(0));
}

#[test]
fn images_become_smaller_and_larger() {
    let [c, h, w] = [2, 9, 19];
    let x = numbers::<f32>(c * h * w, 1);
    let mut pooled = Vec::new();
    for place in 0..c * 5 * 10 {
        let (image, i, j) = (place / 50, place / 10 % 5, place % 10);
        let taps = (0..9)
            .filter_map(|tap| pixel([h, w], (2 * i + tap / 3) as isize - 1, (2 * j + tap % 3) as isize - 1));
        pooled.push(taps.map(|pixel| x[image * h * w + pixel]).fold(f32::NEG_INFINITY, f32::max));
    }
    check_kernel!(max_pool<H = 4, W = 8>(
        input x: (x, [c, h, w]), output y: (vec![0f32; pooled.len()], [c, 5, 10] => pooled, 0.0),
    ));
    let (height, width) = (18, 30);
    let between = |at: usize, from: usize, to: usize| {
        let place = ((at as f64 + 0.5) * from as f64 / to as f64 - 0.5).max(0.0);
        (place as usize, (place as usize + 1).min(from - 1), place.fract())
    };
    let mut larger = Vec::new();
    for place in 0..c * height * width {
        let (image, i, j) = (place / (height * width), place / width % height, place % width);
        let ((top, bottom, down), (left, right, across)) = (between(i, h, height), between(j, w, width));
        let row = |i: usize| {
            let at = |j: usize| f64::from(x[(image * h + i) * w + j]);
            at(left) * (1.0 - across) + at(right) * across
        };
        larger.push(row(top) * (1.0 - down) + row(bottom) * down);
    }
    check_kernel!(resize<H = 8, W = 16>(
        input x: (x, [c, h, w]), output y: (vec![0f32; larger.len()], [c, height, width] => larger, 1e-5),
    ));
}

/// A step of Jacobi's method for Δu = f: tiles of u overlap by their halo.
#[tile_kernel]
fn jacobi<const H: usize, const W: usize>(
    u: &Tensor<f32, m, n>,
    f: &Tensor<f32, m, n>,
    area: f32,
    y: &mut Tensor<f32, m, n>,
) {
    let u = u.pad([(1, 1), (1, 1)]).strided_view([H + 2, W + 2], [H, W]);
    let mut y = y.partition_view_mut([H, W]);
    let f = f.partition_view([H, W]).load_masked(y.index());
    let u = u.load_masked(y.index());
    let vertical = u.extract([0, 1], [H, W]) + u.extract([2, 1], [H, W]);
    let horizontal = u.extract([1, 0], [H, W]) + u.extract([1, 2], [H, W]);
    y.store_masked((vertical + horizontal - f * area) * 0.25);
}

#[test]
fn a_stencil_reads_its_halo() {
    let (m, n) = (20, 50);
    let [u, f] = [1, 2].map(|seed| numbers::<f32>(m * n, seed));
    let expected: Vec<f64> = (0..m * n)
        .map(|place| {
            let (i, j) = ((place / n) as isize, (place % n) as isize);
            let around = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)];
            let sum: f32 = around.into_iter().filter_map(|(i, j)| pixel([m, n], i, j)).map(|at| u[at]).sum();
            f64::from((sum - f[place] * 0.5) * 0.25)
        })
        .collect();
    check_kernel!(jacobi<H = 8, W = 32>(
        input u: (u, [m, n]), input f: (f, [m, n]), number area: (0.5f32),
        output y: (vec![0f32; m * n], [m, n] => expected, 1e-6),
    ));
}

/// Colours of pixels, three to a pixel, upside down and with their red added.
#[tile_kernel]
fn colours<const R: usize, const B: usize>(
    x: &Tensor<u8, h, w, 3>,
    inverted: &mut Tensor<u8, h, w, 3>,
    brighter: &mut Tensor<i32, h, w, 3>,
) {
    let x = x.partition_view([R, B, 3]);
    let mut inverted = inverted.partition_view_mut([R, B, 3]);
    let mut brighter = brighter.partition_view_mut([R, B, 3]);
    let tile = x.load_masked(inverted.index());
    inverted.store_masked(255 - tile);
    let numbers = tile.cast::<i32>();
    brighter.store_masked(numbers + numbers.extract([0, 0, 0], [R, B, 1]) + 7);
}

#[test]
fn colours_of_pixels_at_the_edge_of_an_image() {
    for (h, w) in [(1, 1), (3, 5), (5, 13), (2, 16), (4, 8)] {
        let x: Vec<u8> = (0..h * w * 3).map(|i| (i * 151 % 256) as u8).collect();
        let inverted: Vec<f64> = x.iter().map(|&x| f64::from(255 - x)).collect();
        let red = |i: usize| f64::from(x[i / 3 * 3]);
        let brighter: Vec<f64> = (0..x.len()).map(|i| f64::from(x[i]) + red(i) + 7.0).collect();
        check_kernel!(colours<R = 2, B = 8>(
            input x: (x, [h, w, 3]),
            output inverted: (vec![0u8; h * w * 3], [h, w, 3] => inverted, 0.0),
            output brighter: (vec![0i32; h * w * 3], [h, w, 3] => brighter, 0.0),
        ));
    }
}
