//! Kernels of language models at work: rotary positions, keys in pages, 4-bit weights, experts.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Turns the pairs (x₂ᵢ, x₂ᵢ₊₁) of each head by the angles of their position.
#[tile_kernel]
fn rotary<const T: usize, const D: usize>(
    x: &Tensor<bf16, s, h, { 2 * D }>,
    base: f32,
    y: &mut Tensor<bf16, s, h, { 2 * D }>,
) {
    let mut y = y.partition_view_mut([T, 1, 2 * D]);
    let [i, head, _] = y.index();
    let position = Tile::<f32, 2>::iota([T, 1], 0) + (i * T) as f32;
    let angle = position * exp2(Tile::<f32, 2>::iota([1, D], 1) * (-log2(base) / D as f32));
    let (c, s) = (cos(angle).unsqueeze(2), sin(angle).unsqueeze(2));
    let x = x.partition_view([T, 1, 2 * D]).load_masked([i, head, 0]);
    let [a, b] = x.cast::<f32>().reshape([T, D, 2]).split_even::<2>(2);
    let turned = cat([a * c - b * s, a * s + b * c], 2);
    y.store_masked(turned.reshape([T, 1, 2 * D]).cast::<bf16>());
}

#[test]
fn pairs_are_turned_by_their_position() {
    let (s, h, d) = (11, 3, 16);
    let x = numbers::<bf16>(s * h * 2 * d, 1);
    let mut y = vec![0.0; x.len()];
    for (pair, turned) in y.chunks_mut(2).enumerate() {
        let (position, i) = (pair / (h * d), pair % d);
        let (sin, cos) = (position as f64 * 10000f64.powf(-(i as f64) / d as f64)).sin_cos();
        let (a, b) = (x[2 * pair].to_f64(), x[2 * pair + 1].to_f64());
        turned.copy_from_slice(&[a * cos - b * sin, a * sin + b * cos]);
    }
    check_kernel!(rotary<T = 8, D = 16>(
        input x: (x, [s, h, 2 * d]), number base: (10000f32),
        output y: (vec![bf16::ZERO; y.len()], [s, h, 2 * d] => y, 8e-3),
    ));
}

/// Attention of one new token. Keys and values lie in pages that a table lists; G heads share one head of keys.
#[tile_kernel]
fn paged_decode<const G: usize, const P: usize, const D: usize>(
    q: &Tensor<bf16, b, h, G, D>,
    k: &Tensor<bf16, pages, P, h, D>,
    v: &Tensor<bf16, pages, P, h, D>,
    table: &Tensor<i32, b, most>,
    lengths: &Tensor<i32, b>,
    scale: f32,
    out: &mut Tensor<bf16, b, h, G, D>,
) {
    let k = k.partition_view([1, P, 1, D]);
    let v = v.partition_view([1, P, 1, D]);
    let table = table.partition_view([1, 1]);
    let mut out = out.partition_view_mut([1, 1, G, D]);
    let [b, h, _, _] = out.index();
    let q = q.partition_view([1, 1, G, D]).load([b, h, 0, 0]).reshape([G, D]);
    let length = lengths.partition_view([1]).load([b]).item();
    let mut highest = Tile::full([G, 1], f32::NEG_INFINITY);
    let mut sum = Tile::zeros([G, 1]);
    let mut acc = Tile::zeros([G, D]);
    for i in 0..(length as usize).div_ceil(P) {
        let page = table.load_masked([b, i]).item() as usize;
        let keys = k.load_masked([page, 0, h, 0]).reshape([P, D]);
        let scores = mma(q, keys.t(), Tile::zeros([G, P])) * scale;
        let position = Tile::<i32, 2>::iota([1, P], 1) + (i * P) as i32;
        let scores = select(position.lt(length), scores, f32::NEG_INFINITY);
        let next = max(highest, scores.max(1));
        let p = exp(scores - next);
        let rescale = exp(highest - next);
        highest = next;
        sum = sum * rescale + p.sum(1);
        let values = v.load_masked([page, 0, h, 0]).reshape([P, D]);
        acc = mma(p.cast::<bf16>(), values, acc * rescale);
    }
    out.store((acc / sum).cast::<bf16>().reshape([1, 1, G, D]));
}

#[test]
fn attention_follows_the_table_of_pages() {
    let (b, h, g, p, d, pages, most) = (3, 2, 4, 8, 16, 12, 5);
    let q = numbers::<bf16>(b * h * g * d, 1);
    let [k, v] = [2, 3].map(|seed| numbers::<bf16>(pages * p * h * d, seed));
    let table: Vec<i32> = (0..b * most).map(|i| ((i * 7 + 3) % pages) as i32).collect();
    let lengths = [1i32, 19, 40];
    let mut out = vec![0.0; q.len()];
    for (row, out) in out.chunks_mut(d).enumerate() {
        let (batch, head) = (row / (h * g), row / g % h);
        let at = |t: usize| ((table[batch * most + t / p] as usize * p + t % p) * h + head) * d;
        let weight = |t: usize| {
            let score: f64 = (0..d).map(|c| q[row * d + c].to_f64() * k[at(t) + c].to_f64()).sum();
            (score * 0.25).exp()
        };
        let weights: Vec<f64> = (0..lengths[batch] as usize).map(weight).collect();
        for (c, out) in out.iter_mut().enumerate() {
            let weighted = weights.iter().enumerate().map(|(t, weight)| weight * v[at(t) + c].to_f64());
            *out = weighted.sum::<f64>() / weights.iter().sum::<f64>();
        }
    }
    check_kernel!(paged_decode<G = 4, P = 8, D = 16>(
        input q: (q, [b, h, g, d]), input k: (k, [pages, p, h, d]), input v: (v, [pages, p, h, d]),
        input table: (table, [b, most]), input lengths: (lengths, [b]), number scale: (0.25f32),
        output out: (vec![bf16::ZERO; out.len()], [b, h, g, d] => out, 1e-2),
    ));
}

/// x·wᵀ, eight 4-bit weights in a word, a scale for each W words.
#[tile_kernel]
fn four_bit_weights<const BM: usize, const BN: usize, const W: usize>(
    x: &Tensor<bf16, m, { 8 * k }>,
    w: &Tensor<u32, n, k>,
    scales: &Tensor<bf16, n, { k / W }>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([BM, 8 * W]);
    let w = w.partition_view([BN, W]);
    let scales = scales.partition_view([BN, 1]);
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let shift = Tile::<u32, 3>::iota([1, 1, 8], 2) * 4;
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..x.tiles(1) {
        let nibbles = (w.load_masked([j, p]).unsqueeze(2) >> shift) & 15;
        let weights = (nibbles.cast::<i32>() - 8).reshape([BN, 8 * W]).cast::<bf16>();
        acc = mma(x.load_masked([i, p]), (weights * scales.load_masked([j, p])).t(), acc);
    }
    y.store_masked(acc);
}

#[test]
fn weights_of_four_bits() {
    let (m, n, k) = (20, 40, 64);
    let x = numbers::<bf16>(m * k, 1);
    let scales = numbers::<bf16>(n * 2, 2);
    let four: Vec<u32> = (0..n * k).map(|i| (i * 7 + i / 5) as u32 % 16).collect();
    let words: Vec<u32> =
        four.chunks(8).map(|eight| eight.iter().rev().fold(0, |word, four| word << 4 | four)).collect();
    let mut y = vec![0.0; m * n];
    for (i, y) in y.iter_mut().enumerate() {
        let (row, column) = (i / n, i % n);
        for p in 0..k {
            let weight = (four[column * k + p] as f32 - 8.0) * scales[column * 2 + p / 32].to_f32();
            *y += x[row * k + p].to_f64() * bf16::from_f32(weight).to_f64();
        }
    }
    check_kernel!(four_bit_weights<BM = 16, BN = 32, W = 4>(
        input x: (x, [m, k]), input w: (words, [n, k / 8]), input scales: (scales, [n, 2]),
        output y: (vec![0f32; m * n], [m, n] => y, 1e-4),
    ));
}

/// The residual, its RMS norm as 8-bit integers, and a scale for each row.
#[tile_kernel]
fn quantized_norm<const N: usize>(
    x: &Tensor<bf16, m, n>,
    weight: &Tensor<bf16, n>,
    residual: &mut Tensor<bf16, m, n>,
    q: &mut Tensor<i8, m, n>,
    scale: &mut Tensor<f32, m, 1>,
) {
    let mut residual = residual.partition_view_mut([1, N]);
    let mut q = q.partition_view_mut([1, N]);
    let mut scale = scale.partition_view_mut([1, 1]);
    let sum = x.partition_view([1, N]).load_masked(q.index()) + residual.load_masked();
    residual.store_masked(sum);
    let sum = sum.cast::<f32>();
    let weight = weight.unsqueeze(0).partition_view([1, N]).load_masked([0, 0]).cast::<f32>();
    let y = sum * rsqrt((sum * sum).sum(1) / n as f32 + 1e-6) * weight;
    let step = y.abs().max(1) / 127.0;
    scale.store(step);
    q.store_masked((y / step).round_ties_even().cast::<i8>());
}

#[test]
fn norms_as_integers() {
    let (m, n) = (5, 100);
    let [x, residual] = [1, 2].map(|seed| numbers::<bf16>(m * n, seed));
    let weight = numbers::<bf16>(n, 3);
    let sum: Vec<f64> = x.iter().zip(&residual).map(|(x, r)| (x + r).to_f64()).collect();
    let (mut q, mut scales) = (Vec::new(), Vec::new());
    for row in sum.chunks(n) {
        let norm = (row.iter().map(|x| x * x).sum::<f64>() / n as f64 + 1e-6).sqrt();
        let y: Vec<f64> = row.iter().zip(&weight).map(|(x, weight)| x / norm * weight.to_f64()).collect();
        let step = y.iter().fold(0.0, |most: f64, y| most.max(y.abs())) / 127.0;
        q.extend(y.iter().map(|y| (y / step).round_ties_even() as i8));
        scales.push(step);
    }
    check_kernel!(quantized_norm<N = 128>(
        input x: (x, [m, n]), input weight: (weight, [n]), output residual: (residual, [m, n] => sum, 0.0),
        output q: (vec![0i8; m * n], [m, n] => q, 0.0), output scale: (vec![0f32; m], [m, 1] => scales, 1e-5),
    ));
}

/// The two likeliest of E experts for each token, their weights, and how many tokens each expert has.
#[tile_kernel(grid = [t.div_ceil(B)])]
fn route<const B: usize, const E: usize>(
    logits: &Tensor<f32, t, E>,
    expert: &mut Tensor<i32, t, 2>,
    weight: &mut Tensor<f32, t, 2>,
    counts: &mut Tensor<i32, E>,
) {
    let (best, which) = logits.partition_view([B, E]).load_masked([block_id(0), 0]).top_k(2, 1);
    let weights = exp(best - best.max(1));
    let row = Tile::<i32, 2>::iota([B, 1], 0) + (block_id(0) * B) as i32;
    let column = Tile::<i32, 2>::iota([1, 2], 1);
    expert.atomic_view().store([row, column], which, Relaxed, DeviceScope);
    weight.atomic_view().store([row, column], weights / weights.sum(1), Relaxed, DeviceScope);
    let counted = select(row.lt(t as i32), which, -1).histogram(E);
    counts.atomic_view().fetch_add([Tile::<i32, 1>::iota([E], 0)], counted, Relaxed, DeviceScope);
}

#[test]
fn tokens_go_to_the_two_likeliest_experts() {
    let t = 37;
    let logits: Vec<f32> = (0..t * 8).map(|i| ((i * 37) % 101) as f32 / 16.0).collect();
    let (mut expert, mut weight, mut counts) = (Vec::new(), Vec::new(), vec![0; 8]);
    for row in logits.chunks(8) {
        let mut order: Vec<usize> = (0..8).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let first = 1.0 / (1.0 + f64::from(row[order[1]] - row[order[0]]).exp());
        weight.extend([first, 1.0 - first]);
        for &which in &order[..2] {
            expert.push(which as i32);
            counts[which] += 1;
        }
    }
    check_kernel!(route<B = 16, E = 8>(
        input logits: (logits, [t, 8]), output expert: (vec![0i32; 2 * t], [t, 2] => expert, 0.0),
        output weight: (vec![0f32; 2 * t], [t, 2] => weight, 1e-6), output counts: (vec![0i32; 8], [8] => counts, 0.0),
    ));
}

/// The products of experts: every BM rows have an expert, and each row names the token that it is.
#[tile_kernel]
fn grouped<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, t, k>,
    token: &Tensor<i32, r>,
    expert: &Tensor<i32, { r / BM }>,
    w: &Tensor<bf16, e, k, n>,
    y: &mut Tensor<f32, r, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let which = expert.partition_view([1]).load_masked([i]).item();
    let rows = token.unsqueeze(1).partition_view([BM, 1]).load_masked_or(-1, [i, 0]);
    let w = w.select(0, which as usize).partition_view([BK, BN]);
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..w.tiles(0) {
        let columns = Tile::<i32, 2>::iota([1, BK], 1) + (p * BK) as i32;
        acc = mma(x.gather([rows, columns]), w.load_masked([p, j]), acc);
    }
    y.store_masked(acc);
}

#[test]
fn rows_are_gathered_for_their_expert() {
    let (t, k, n, e) = (19, 40, 50, 3);
    let x = numbers::<bf16>(t * k, 1);
    let w = numbers::<bf16>(e * k * n, 2);
    // The last rows of an expert may be nobody's.
    let token: Vec<i32> = (0..48).map(|i| if i % 16 > 12 { -1 } else { (i * 5) % t as i32 }).collect();
    let expert = [2, 0, 2];
    let mut y = vec![0.0; token.len() * n];
    for (i, y) in y.iter_mut().enumerate() {
        let (row, column) = (i / n, i % n);
        let Ok(token) = usize::try_from(token[row]) else { continue };
        let weight = |p: usize| w[(expert[row / 16] as usize * k + p) * n + column].to_f64();
        *y = (0..k).map(|p| x[token * k + p].to_f64() * weight(p)).sum();
    }
    let r = token.len();
    check_kernel!(grouped<BM = 16, BN = 32, BK = 32>(
        input x: (x, [t, k]), input token: (token, [r]), input expert: (expert, [3]), input w: (w, [e, k, n]),
        output y: (vec![0f32; r * n], [r, n] => y, 1e-4),
    ));
}

/// The products of experts where some rows have none: their blocks have nothing to do. In tiles that Hopper's
/// warpgroups multiply.
#[tile_kernel]
fn grouped_or_not<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, r, k>,
    expert: &Tensor<i32, { r / BM }>,
    w: &Tensor<bf16, e, k, n>,
    y: &mut Tensor<f32, r, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let which = expert.partition_view([1]).load_masked([i]).item();
    let (x, w) = (x.partition_view([BM, BK]), w.select(0, which as usize).partition_view([BK, BN]));
    if which < 0 {
        return;
    }
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..w.tiles(0) {
        acc = mma(x.load_masked([i, p]), w.load_masked([p, j]), acc);
    }
    y.store_masked(acc);
}

/// The same with the rest of the kernel in a branch.
#[tile_kernel]
fn grouped_if<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, r, k>,
    expert: &Tensor<i32, { r / BM }>,
    w: &Tensor<bf16, e, k, n>,
    y: &mut Tensor<f32, r, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let which = expert.partition_view([1]).load_masked([i]).item();
    let (x, w) = (x.partition_view([BM, BK]), w.select(0, which as usize).partition_view([BK, BN]));
    if which >= 0 {
        let mut acc = Tile::zeros([BM, BN]);
        for p in 0..w.tiles(0) {
            acc = mma(x.load_masked([i, p]), w.load_masked([p, j]), acc);
        }
        y.store_masked(acc);
    }
}

/// The same with no turns where there is no expert: sums of nothing are stored.
#[tile_kernel]
fn grouped_turns<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, r, k>,
    expert: &Tensor<i32, { r / BM }>,
    w: &Tensor<bf16, e, k, n>,
    y: &mut Tensor<f32, r, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let which = expert.partition_view([1]).load_masked([i]).item();
    let (x, w) = (x.partition_view([BM, BK]), w.select(0, which as usize).partition_view([BK, BN]));
    let turns = if which < 0 { 0 } else { w.tiles(0) };
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..turns {
        acc = mma(x.load_masked([i, p]), w.load_masked([p, j]), acc);
    }
    y.store_masked(acc);
}

#[test]
fn rows_without_an_expert_are_left_alone() {
    let (r, k, n, e) = (4 * 64, 72, 80, 3);
    let x = numbers::<bf16>(r * k, 1);
    let w = numbers::<bf16>(e * k * n, 2);
    let expert = [2, -1, -1, 0];
    let before = 7.0;
    let of = |without: f32| -> Vec<f32> {
        let element = |i: usize| {
            let (row, column) = (i / n, i % n);
            let Ok(expert) = usize::try_from(expert[row / 64]) else { return without };
            let weight = |p: usize| w[(expert * k + p) * n + column].to_f64();
            (0..k).map(|p| x[row * k + p].to_f64() * weight(p)).sum::<f64>() as f32
        };
        (0..r * n).map(element).collect()
    };
    let (kept, summed) = (of(before), of(0.0));
    let first = vec![before; r * n];
    check_kernel!(grouped_or_not<BM = 64, BN = 64, BK = 64>(
        input x: (x, [r, k]), input expert: (expert, [4]), input w: (w, [e, k, n]),
        output y: (first, [r, n] => kept, 1e-4),
    ));
    check_kernel!(grouped_if<BM = 64, BN = 64, BK = 64>(
        input x: (x, [r, k]), input expert: (expert, [4]), input w: (w, [e, k, n]),
        output y: (first, [r, n] => kept, 1e-4),
    ));
    check_kernel!(grouped_turns<BM = 64, BN = 64, BK = 64>(
        input x: (x, [r, k]), input expert: (expert, [4]), input w: (w, [e, k, n]),
        output y: (first, [r, n] => summed, 1e-4),
    ));
}
