//! Attention as models have it, each with something else: one kernel, of which a launch says what it has; and a cache so
//! long that several blocks share a query.

use super::{compare, devices, numbers, widen};
use tile::prelude::*;

/// Attention of the last queries of sequences. Lengths, slopes of ALiBi, a cap of scores and a window may be left out; G
/// heads share one of keys.
#[tile_kernel]
fn attention<const BM: usize, const BN: usize, const D: usize, const G: usize, const CAUSAL: bool>(
    q: &Tensor<f32, b, n, { G * h }, D>,
    k: &Tensor<f32, b, s, h, D>,
    v: &Tensor<f32, b, s, h, D>,
    lengths: Option<&Tensor<i32, b>>,
    slopes: Option<&Tensor<f32, { G * h }>>,
    cap: Option<f32>,
    window: Option<i32>,
    out: &mut Tensor<f32, b, n, { G * h }, D>,
) {
    let mut out = out.partition_view_mut([1, BM, 1, D]);
    let [b, i, head, _] = out.index();
    let q = q.partition_view([1, BM, 1, D]).load_masked([b, i, head, 0]).reshape([BM, D]);
    let k = k.partition_view([1, BN, 1, D]);
    let v = v.partition_view([1, BN, 1, D]);
    let length = match lengths {
        Some(lengths) => lengths.partition_view([1]).load([b]).item(),
        None => s as i32,
    };
    // The queries are the last ones of the sequence.
    let first = length - n as i32 + (i * BM) as i32;
    let rows = Tile::<i32, 2>::iota([BM, 1], 0) + first;
    let end = if CAUSAL { (first + BM as i32).clamp(0, length) } else { length };
    let begin = if let Some(window) = window { (first - window + 1).max(0) } else { 0 };
    let mut highest = Tile::full([BM, 1], f32::NEG_INFINITY);
    let mut total = Tile::zeros([BM, 1]);
    let mut acc = Tile::zeros([BM, D]);
    for p in begin as usize / BN..(end as usize).div_ceil(BN) {
        let columns = Tile::<i32, 2>::iota([1, BN], 1) + (p * BN) as i32;
        let keys = k.load_masked([b, p, head / G, 0]).reshape([BN, D]);
        let mut scores = mma(q, keys.t(), Tile::zeros([BM, BN]));
        if let Some(cap) = cap {
            scores = cap * tanh(scores / cap);
        }
        if let Some(slopes) = slopes {
            let slope = slopes.partition_view([1]).load_masked([head]).item();
            scores -= slope * (rows - columns).abs().cast::<f32>();
        }
        let mut seen = (columns < length).broadcast([BM, BN]);
        if CAUSAL {
            seen &= columns <= rows;
        }
        if let Some(window) = window {
            seen &= columns > rows - window;
        }
        let scores = select(seen, scores, f32::NEG_INFINITY);
        let higher = max(highest, scores.max(1));
        // Rows that have seen nothing yet: −∞ less −∞ is no number.
        let base = select(higher == f32::NEG_INFINITY, 0.0, higher);
        let (weights, kept) = (exp(scores - base), exp(highest - base));
        total = total * kept + weights.sum(1);
        acc = mma(weights, v.load_masked([b, p, head / G, 0]).reshape([BN, D]), acc * kept);
        highest = higher;
    }
    out.store_masked((acc / total).reshape([1, BM, 1, D]));
}

/// Σ w·v / Σ w over the keys that a query sees, with weights w = exp(score).
fn weighted(
    scores: impl Iterator<Item = (usize, f64)>,
    value: impl Fn(usize, usize) -> f64,
    d: usize,
) -> Vec<f64> {
    let weights: Vec<(usize, f64)> = scores.map(|(key, score)| (key, score.exp())).collect();
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let element = |c| weights.iter().map(|&(key, weight)| weight * value(key, c)).sum::<f64>() / total;
    (0..d).map(element).collect()
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[test]
fn a_launch_says_what_attention_has() {
    let (b, n, s, h, g, d) = (2, 20, 37, 2, 2, 16);
    let q = numbers::<f32>(b * n * h * g * d, 1);
    let [k, v] = [2, 3].map(|seed| numbers::<f32>(b * s * h * d, seed));
    let (lengths, slopes) = ([37, 25], [0.5f32, 0.25, 0.125, 0.0625]);
    for (has_lengths, has_slopes, cap, window) in [
        (false, false, None, None),
        (true, true, Some(1.5f32), Some(7)),
        (true, false, None, Some(9)),
        (false, true, Some(0.75), None),
    ] {
        let row = |at: usize| {
            let (batch, head) = (at / (n * h * g), at % (h * g));
            let length = if has_lengths { lengths[batch] } else { s as i32 };
            let place = length - n as i32 + (at / (h * g) % n) as i32;
            let first = window.map_or(0, |window| (place - window + 1).max(0));
            let at_key = |key: usize| ((batch * s + key) * h + head / g) * d;
            let score = |key: usize| {
                let mut score = product(&q[at * d..][..d], &k[at_key(key)..][..d]);
                if let Some(cap) = cap.map(f64::from) {
                    score = cap * (score / cap).tanh();
                }
                let slope = if has_slopes { f64::from(slopes[head]) } else { 0.0 };
                (key, score - slope * f64::from(place - key as i32))
            };
            let keys = (first..=place).map(|key| score(key as usize));
            weighted(keys, |key, c| f64::from(v[at_key(key) + c]), d)
        };
        let expected: Vec<f64> = (0..b * n * h * g).flat_map(row).collect();
        for (device, label) in devices() {
            let q = Tensor::from_slice(&device, &q, [b, n, h * g, d]).unwrap();
            let [k, v] = [&k, &v].map(|x| Tensor::from_slice(&device, x, [b, s, h, d]).unwrap());
            let lengths = Tensor::from_slice(&device, &lengths, [b]).unwrap();
            let slopes = Tensor::from_slice(&device, &slopes, [h * g]).unwrap();
            let mut out = Tensor::zeros(&device, [b, n, h * g, d]).unwrap();
            let lengths = has_lengths.then_some(&*lengths);
            let slopes = has_slopes.then_some(&*slopes);
            attention::<8, 8, 16, 2, true>(&q, &k, &v, lengths, slopes, cap, window, &mut out)
                .launch()
                .unwrap();
            compare(label, &widen(&out.to_vec().unwrap()), &expected, 1e-4);
        }
    }
}

/// One of the parts of the keys in pages of P that blocks share, with the logarithm of its weights' sum.
#[tile_kernel]
fn part<const G: usize, const P: usize, const D: usize>(
    q: &Tensor<f32, b, h, G, D>,
    k: &Tensor<f32, pages, P, h, D>,
    v: &Tensor<f32, pages, P, h, D>,
    table: &Tensor<i32, b, most>,
    lengths: &Tensor<i32, b>,
    parts: &mut Tensor<f32, b, h, count, G, D>,
    log_sums: &mut Tensor<f32, b, h, count, G>,
) {
    let mut parts = parts.partition_view_mut([1, 1, 1, G, D]);
    let mut log_sums = log_sums.unsqueeze(4).partition_view_mut([1, 1, 1, G, 1]);
    let [b, h, part, ..] = parts.index();
    let q = q.partition_view([1, 1, G, D]).load([b, h, 0, 0]).reshape([G, D]);
    let k = k.partition_view([1, P, 1, D]);
    let v = v.partition_view([1, P, 1, D]);
    let table = table.partition_view([1, 1]);
    let length = lengths.partition_view([1]).load([b]).item();
    let pages = (length as usize).div_ceil(P);
    let each = pages.div_ceil(count);
    let mut highest = Tile::full([G, 1], f32::NEG_INFINITY);
    let mut total = Tile::zeros([G, 1]);
    let mut acc = Tile::zeros([G, D]);
    for i in part * each..((part + 1) * each).min(pages) {
        let page = table.load_masked([b, i]).item() as usize;
        let keys = k.load_masked([page, 0, h, 0]).reshape([P, D]);
        let scores = mma(q, keys.t(), Tile::zeros([G, P]));
        let places = Tile::<i32, 2>::iota([1, P], 1) + (i * P) as i32;
        let scores = select(places < length, scores, f32::NEG_INFINITY);
        let higher = max(highest, scores.max(1));
        let (weights, kept) = (exp(scores - higher), exp(highest - higher));
        total = total * kept + weights.sum(1);
        acc = mma(weights, v.load_masked([page, 0, h, 0]).reshape([P, D]), acc * kept);
        highest = higher;
    }
    let some = total > 0.0;
    parts.store(select(some, acc / total, 0.0).reshape([1, 1, 1, G, D]));
    log_sums.store(select(some, highest + log(total), f32::NEG_INFINITY).reshape([1, 1, 1, G, 1]));
}

/// The parts as one.
#[tile_kernel]
fn joined<const COUNT: usize, const G: usize, const D: usize>(
    parts: &Tensor<f32, b, h, COUNT, G, D>,
    log_sums: &Tensor<f32, b, h, COUNT, G>,
    out: &mut Tensor<f32, b, h, G, D>,
) {
    let mut out = out.partition_view_mut([1, 1, G, D]);
    let [b, h, ..] = out.index();
    let parts = parts.partition_view([1, 1, COUNT, G, D]).load([b, h, 0, 0, 0]).reshape([COUNT, G, D]);
    let log_sums = log_sums.partition_view([1, 1, COUNT, G]).load([b, h, 0, 0]).reshape([COUNT, G, 1]);
    let weights = exp(log_sums - log_sums.max(0));
    out.store(((parts * weights).sum(0) / weights.sum(0)).reshape([1, 1, G, D]));
}

#[test]
fn blocks_share_the_keys_of_a_query() {
    let (b, h, g, d, p, pages, most, count) = (2, 2, 2, 8, 4, 12, 6, 4);
    let q = numbers::<f32>(b * h * g * d, 1);
    let [k, v] = [2, 3].map(|seed| numbers::<f32>(pages * p * h * d, seed));
    let table: Vec<i32> = (0..b * most).map(|i| ((i * 5 + 3) % pages) as i32).collect();
    // Of the first sequence some parts have no key.
    let lengths = [3i32, 22];
    let row = |row: usize| {
        let (batch, head) = (row / (h * g), row / g % h);
        let at = |key: usize| ((table[batch * most + key / p] as usize * p + key % p) * h + head) * d;
        let scores =
            (0..lengths[batch] as usize).map(|key| (key, product(&q[row * d..][..d], &k[at(key)..][..d])));
        weighted(scores, |key, c| f64::from(v[at(key) + c]), d)
    };
    let expected: Vec<f64> = (0..b * h * g).flat_map(row).collect();
    for (device, label) in devices() {
        let q = Tensor::from_slice(&device, &q, [b, h, g, d]).unwrap();
        let [k, v] = [&k, &v].map(|x| Tensor::from_slice(&device, x, [pages, p, h, d]).unwrap());
        let table = Tensor::from_slice(&device, &table, [b, most]).unwrap();
        let lengths = Tensor::from_slice(&device, &lengths, [b]).unwrap();
        let mut parts = Tensor::zeros(&device, [b, h, count, g, d]).unwrap();
        let mut log_sums = Tensor::zeros(&device, [b, h, count, g]).unwrap();
        let mut out = Tensor::zeros(&device, [b, h, g, d]).unwrap();
        part::<2, 4, 8>(&q, &k, &v, &table, &lengths, &mut parts, &mut log_sums).launch().unwrap();
        joined::<4, 2, 8>(&parts, &log_sums, &mut out).launch().unwrap();
        compare(label, &widen(&out.to_vec().unwrap()), &expected, 1e-4);
    }
}
