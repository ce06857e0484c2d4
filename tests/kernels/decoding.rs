//! Attention of one new token as current models have it: a window with a sink, and keys that are kept compressed.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// G heads share one head of keys, of which the last `window` count; a number of its own is each head's sink, which takes
/// a share of the attention and gives nothing.
#[tile_kernel]
fn decode_with_sinks<const G: usize, const P: usize, const D: usize>(
    q: &Tensor<bf16, b, h, G, D>,
    k: &Tensor<bf16, b, s, h, D>,
    v: &Tensor<bf16, b, s, h, D>,
    sinks: &Tensor<f32, h, G>,
    lengths: &Tensor<i32, b>,
    window: i32,
    scale: f32,
    out: &mut Tensor<bf16, b, h, G, D>,
) {
    let k = k.partition_view([1, P, 1, D]);
    let v = v.partition_view([1, P, 1, D]);
    let mut out = out.partition_view_mut([1, 1, G, D]);
    let [b, h, _, _] = out.index();
    let q = q.partition_view([1, 1, G, D]).load([b, h, 0, 0]).reshape([G, D]);
    let length = lengths.partition_view([1]).load([b]).item();
    let first = max(length - window, 0);
    let mut highest = sinks.partition_view([1, G]).load([h, 0]).reshape([G, 1]);
    let mut total = Tile::ones([G, 1]);
    let mut acc = Tile::zeros([G, D]);
    for p in first as usize / P..(length as usize).div_ceil(P) {
        let keys = k.load_masked([b, p, h, 0]).reshape([P, D]);
        let values = v.load_masked([b, p, h, 0]).reshape([P, D]);
        let at = Tile::<i32, 2>::iota([1, P], 1) + (p * P) as i32;
        let scores = mma(q, keys.t(), Tile::zeros([G, P])) * scale;
        let scores = select((at >= first) & (at < length), scores, f32::NEG_INFINITY);
        let higher = max(highest, scores.max(1));
        let (weights, kept) = (exp(scores - higher), exp(highest - higher));
        total = total * kept + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), values, acc * kept);
        highest = higher;
    }
    out.store((acc / total).cast::<bf16>().reshape([1, 1, G, D]));
}

/// Values weighted by the exponentials of their scores; a sink is a score without a value.
fn attend(scores: &[f64], sink: Option<f64>, value: impl Fn(usize) -> f64) -> f64 {
    let highest = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    let weight = |score: f64| (score - highest).exp();
    let total: f64 = scores.iter().copied().chain(sink).map(weight).sum();
    scores.iter().enumerate().map(|(i, &score)| weight(score) * value(i)).sum::<f64>() / total
}

fn dot(a: &[bf16], b: &[bf16]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
}

#[test]
fn a_window_ends_where_the_sequence_does() {
    let (b, s, h, g, d) = (3, 45, 2, 4, 32);
    let q = numbers::<bf16>(b * h * g * d, 1);
    let k = numbers::<bf16>(b * s * h * d, 2);
    let v = numbers::<bf16>(b * s * h * d, 3);
    let sinks = numbers::<f32>(h * g, 4);
    // The last sequence is empty: the sink has all of the attention.
    let (lengths, seen_at_most, factor) = ([45, 7, 0], 20, 0.25f32);
    let mut out = vec![];
    for head in 0..b * h * g {
        let (i, j) = (head / (h * g), head / g % h);
        let row = |t: usize| ((i * s + t) * h + j) * d;
        let seen: Vec<usize> = (0.max(lengths[i] - seen_at_most)..lengths[i]).map(|t| t as usize).collect();
        let score = |&t: &usize| dot(&q[head * d..][..d], &k[row(t)..][..d]) * f64::from(factor);
        let scores: Vec<f64> = seen.iter().map(score).collect();
        let sink = Some(f64::from(sinks[head % (h * g)]));
        out.extend((0..d).map(|e| attend(&scores, sink, |n| v[row(seen[n]) + e].to_f64())));
    }
    check_kernel!(decode_with_sinks<G = 4, P = 16, D = 32>(
        input q: (q, [b, h, g, d]), input k: (k, [b, s, h, d]), input v: (v, [b, s, h, d]), input sinks: (sinks, [h, g]),
        input lengths: (lengths, [b]), number window: (seen_at_most), number scale: (factor),
        output out: (vec![bf16::ZERO; out.len()], [b, h, g, d] => out, 8e-3),
    ));
}

/// Latent attention: a row of the cache is C numbers, which are keys and values at once, and R more that turn with the
/// position. All heads share it.
#[tile_kernel]
fn latent_decode<const H: usize, const P: usize, const C: usize, const R: usize>(
    q: &Tensor<bf16, b, h, { C + R }>,
    cache: &Tensor<bf16, b, s, { C + R }>,
    lengths: &Tensor<i32, b>,
    scale: f32,
    out: &mut Tensor<bf16, b, h, C>,
) {
    let mut out = out.partition_view_mut([1, H, C]);
    let [b, i, _] = out.index();
    let length = lengths.partition_view([1]).load([b]).item();
    let (q, cache) = (q.select(0, b), cache.select(0, b));
    let latent = cache.shrink([(0, s), (0, C)]).partition_view([P, C]);
    let turned = cache.shrink([(0, s), (C, C + R)]).partition_view([P, R]);
    let q_latent = q.shrink([(0, h), (0, C)]).partition_view([H, C]).load_masked([i, 0]);
    let q_turned = q.shrink([(0, h), (C, C + R)]).partition_view([H, R]).load_masked([i, 0]);
    let mut highest = Tile::full([H, 1], f32::NEG_INFINITY);
    let mut total = Tile::zeros([H, 1]);
    let mut acc = Tile::zeros([H, C]);
    for p in 0..(length as usize).div_ceil(P) {
        let rows = latent.load_masked([p, 0]);
        let scores = mma(q_latent, rows.t(), Tile::zeros([H, P]));
        let scores = mma(q_turned, turned.load_masked([p, 0]).t(), scores) * scale;
        let at = Tile::<i32, 2>::iota([1, P], 1) + (p * P) as i32;
        let scores = select(at < length, scores, f32::NEG_INFINITY);
        let higher = max(highest, scores.max(1));
        let (weights, kept) = (exp(scores - higher), exp(highest - higher));
        total = total * kept + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), rows, acc * kept);
        highest = higher;
    }
    out.store_masked((acc / total).cast::<bf16>().reshape([1, H, C]));
}

#[test]
fn heads_share_a_compressed_cache() {
    let (b, h, s, c, r) = (2, 20, 37, 64, 16);
    let w = c + r;
    let q = numbers::<bf16>(b * h * w, 1);
    let cache = numbers::<bf16>(b * s * w, 2);
    let (lengths, factor) = ([37, 18], 0.25f32);
    let mut out = vec![];
    for head in 0..b * h {
        let rows = &cache[head / h * s * w..][..lengths[head / h] as usize * w];
        let score = |row: &[bf16]| dot(&q[head * w..][..w], row) * f64::from(factor);
        let scores: Vec<f64> = rows.chunks(w).map(score).collect();
        out.extend((0..c).map(|e| attend(&scores, None, |t| rows[t * w + e].to_f64())));
    }
    check_kernel!(latent_decode<H = 16, P = 16, C = 64, R = 16>(
        input q: (q, [b, h, w]), input cache: (cache, [b, s, w]), input lengths: (lengths, [b]), number scale: (factor),
        output out: (vec![bf16::ZERO; out.len()], [b, h, c] => out, 8e-3),
    ));
}
