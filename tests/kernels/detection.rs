//! What models of images need beside convolutions: samples between pixels, boxes that hide each other, medians.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Samples of an image at places in −1 … 1, weighted by the four pixels around each; outside there is 0.
#[tile_kernel]
fn sampled<const W: usize>(
    x: &Tensor<f32, n, c, h, w>,
    places: &Tensor<f32, n, a, b, 2>,
    y: &mut Tensor<f32, n, c, a, b>,
) {
    let mut y = y.partition_view_mut([1, 1, 1, W]);
    let [n, c, i, j] = y.index();
    let places = places.partition_view([1, 1, W, 2]).load_masked([n, i, j, 0]);
    let [u, v] = places.reshape([W, 2]).split_even::<2>(1);
    let (u, v) = (((u + 1.0) * w as f32 - 1.0) / 2.0, ((v + 1.0) * h as f32 - 1.0) / 2.0);
    let mut acc = Tile::zeros([W, 1]);
    for (right, below) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
        let (column, row) = (floor(u) + right, floor(v) + below);
        let weight = (1.0 - (u - column).abs()) * (1.0 - (v - row).abs());
        acc += x.gather((n, c, row.cast::<i32>(), column.cast::<i32>())) * weight;
    }
    y.store_masked(acc.reshape([1, 1, 1, W]));
}

#[test]
fn images_are_sampled_between_pixels() {
    let (n, c, h, w, a, b) = (2, 3, 5, 6, 4, 7);
    let x = numbers::<f32>(n * c * h * w, 1);
    let places: Vec<f32> = numbers::<f32>(n * a * b * 2, 2).iter().map(|x| x * 1.25).collect();
    let element = |at: usize| {
        let (image, channel, place) =
            (at / (c * a * b), at / (a * b) % c, at / (c * a * b) * a * b + at % (a * b));
        let pixel = |x: f32, size: usize| ((x + 1.0) * size as f32 - 1.0) / 2.0;
        let (u, v) = (pixel(places[2 * place], w), pixel(places[2 * place + 1], h));
        // The weight of a pixel falls to 0 where the next one is.
        let weight = |x: f32, i: usize| (1.0 - (x - i as f32).abs()).max(0.0);
        let of = |i: usize| x[(image * c + channel) * h * w + i] * weight(v, i / w) * weight(u, i % w);
        (0..h * w).map(|i| f64::from(of(i))).sum::<f64>()
    };
    let y: Vec<f64> = (0..n * c * a * b).map(element).collect();
    check_kernel!(sampled<W = 4>(
        input x: (x, [n, c, h, w]), input places: (places, [n, a, b, 2]),
        output y: (vec![0f32; y.len()], [n, c, a, b] => y, 1e-5),
    ));
}

/// How much of two boxes together is in both.
#[tile_fn]
fn overlap(a: Tile<f32, 2>, b: Tile<f32, 2>) -> Tile<f32, 2> {
    let [a_left, a_top, a_right, a_bottom] = a.split_even::<4>(1);
    let [b_left, b_top, b_right, b_bottom] = b.t().split_even::<4>(0);
    let width = max(min(a_right, b_right) - max(a_left, b_left), 0.0);
    let height = max(min(a_bottom, b_bottom) - max(a_top, b_top), 0.0);
    let areas = (a_right - a_left) * (a_bottom - a_top) + (b_right - b_left) * (b_bottom - b_top);
    width * height / (areas - width * height)
}

/// The boxes that no better one that is kept overlaps by more than the threshold.
#[tile_kernel]
fn suppressed<const N: usize>(
    boxes: &Tensor<f32, n, 4>,
    scores: &Tensor<f32, n>,
    threshold: f32,
    keep: &mut Tensor<bool, n>,
) {
    let mut keep = keep.partition_view_mut([N]);
    let [i] = keep.index();
    let boxes = boxes.partition_view([N, 4]).load_masked([i, 0]);
    let order = scores.partition_view([N]).load_masked_or(f32::NEG_INFINITY, [i]).argsort_descending(0);
    let sorted = boxes.gather(order.reshape([N, 1]).broadcast([N, 4]), 0);
    let is_later = Tile::<i32, 2>::iota([1, N], 1) > Tile::<i32, 2>::iota([N, 1], 0);
    let hides = (overlap(sorted, sorted) > threshold) & is_later;
    let mut kept = Tile::full([1, N], true);
    for k in 0..N {
        kept = kept & !(hides.take(k, 0) & kept.take(k, 1));
    }
    keep.store_masked(Tile::full([N], false).scatter(order, kept.reshape([N]), 0));
}

#[test]
fn boxes_hide_others() {
    let n = 13;
    let corner = numbers::<f32>(n * 4, 3);
    let corners = corner.chunks(4).map(|x| (x[0] * 2.0, x[1] * 2.0, 1.0 + x[2].abs(), 1.0 + x[3].abs()));
    let boxes: Vec<[f32; 4]> = corners.map(|(x, y, w, h)| [x, y, x + w, y + h]).collect();
    let scores = numbers::<f32>(n, 5);
    let shared = |a: [f32; 4], b: [f32; 4]| {
        let side = |axis: usize| (a[axis + 2].min(b[axis + 2]) - a[axis].max(b[axis])).max(0.0);
        let area = |x: [f32; 4]| (x[2] - x[0]) * (x[3] - x[1]);
        let both = side(0) * side(1);
        both / (area(a) + area(b) - both)
    };
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| scores[j].total_cmp(&scores[i]));
    let mut kept: Vec<usize> = vec![];
    for i in order {
        if kept.iter().all(|&better| shared(boxes[better], boxes[i]) <= 0.2) {
            kept.push(i);
        }
    }
    let keep: Vec<u8> = (0..n).map(|i| u8::from(kept.contains(&i))).collect();
    assert!(kept.len() > 2 && kept.len() < n);
    check_kernel!(suppressed<N = 16>(
        input boxes: (boxes.concat(), [n, 4]), input scores: (scores, [n]), number threshold: (0.2f32),
        output keep: (vec![false; n], [n] => keep, 0.0),
    ));
}

#[tile_fn]
fn ordered(a: Tile<u8, 2>, b: Tile<u8, 2>) -> (Tile<u8, 2>, Tile<u8, 2>) {
    (min(a, b), max(a, b))
}

/// The median of the nine pixels around each, by the shortest network of exchanges; pixels at an edge are repeated beyond.
#[tile_kernel]
fn median<const H: usize, const W: usize>(x: &Tensor<u8, h, w>, y: &mut Tensor<u8, h, w>) {
    let mut y = y.partition_view_mut([H, W]);
    let [i, j] = y.index();
    let rows = Tile::<i32, 2>::iota([H, 1], 0) + (i * H) as i32 - 1;
    let columns = Tile::<i32, 2>::iota([1, W], 1) + (j * W) as i32 - 1;
    let mut near = [Tile::<u8, 2>::zeros([H, W]); 9];
    for d in 0..9 {
        let row = (rows + (d / 3) as i32).clamp(0, h as i32 - 1);
        let column = (columns + (d % 3) as i32).clamp(0, w as i32 - 1);
        near[d] = x.gather((row, column));
    }
    for (a, b) in
        [(1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3), (5, 8), (4, 7)]
    {
        (near[a], near[b]) = ordered(near[a], near[b]);
    }
    for (a, b) in [(3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2)] {
        (near[a], near[b]) = ordered(near[a], near[b]);
    }
    y.store_masked(near[4]);
}

#[test]
fn outliers_are_no_medians() {
    let (h, w) = (7, 9);
    let x: Vec<u8> = (0..h * w).map(|i| (i * i * 89 % 251) as u8).collect();
    let pixel = |i: usize, j: usize| {
        let inside = |at: usize, size: usize| at.saturating_sub(1).min(size - 1);
        x[inside(i, h) * w + inside(j, w)]
    };
    let element = |at: usize| {
        let mut near: Vec<u8> = (0..9).map(|d| pixel(at / w + d / 3, at % w + d % 3)).collect();
        near.sort_unstable();
        near[4]
    };
    let y: Vec<u8> = (0..h * w).map(element).collect();
    check_kernel!(median<H = 4, W = 8>(
        input x: (x, [h, w]), output y: (vec![0u8; h * w], [h, w] => y, 0.0),
    ));
}
