//! Attention to the blocks of keys on a list, with scores and masks that closures change, and its derivatives.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    /// Scores of a block of queries and one of keys: of places that the mask keeps, changed as the closure says.
    #[tile_fn]
    fn modified<const B: usize>(
        products: Tile<f32, 2>,
        query: i32,
        key: i32,
        change: impl Fn(Tile<f32, 2>, Tile<i32, 2>) -> Tile<f32, 2>,
        keeps: impl Fn(Tile<i32, 2>, Tile<i32, 2>) -> Tile<bool, 2>,
    ) -> Tile<f32, 2> {
        let to = Tile::<i32, 2>::iota([B, 1], 0) + query;
        let from = Tile::<i32, 2>::iota([1, B], 1) + key;
        select(keeps(to, from), change(products, from - to), f32::NEG_INFINITY)
    }

    /// Causal attention within a window, with a slope and a cap: a block of queries sees `counts` blocks of keys, those
    /// that `lists` names. G heads share one of keys.
    #[tile_kernel]
    pub(super) fn attention<const B: usize, const D: usize, const G: usize>(
        q: &Tensor<bf16, { G * h }, t, D>,
        k: &Tensor<bf16, h, t, D>,
        v: &Tensor<bf16, h, t, D>,
        counts: &Tensor<i32, { t.div_ceil(B) }>,
        lists: &Tensor<i32, { t.div_ceil(B) }, l>,
        slopes: &Tensor<f32, { G * h }>,
        cap: f32,
        window: i32,
        out: &mut Tensor<bf16, { G * h }, t, D>,
        lse: &mut Tensor<f32, { G * h }, t>,
    ) {
        let q = q.partition_view([1, B, D]);
        let k = k.partition_view([1, B, D]);
        let v = v.partition_view([1, B, D]);
        let mut out = out.partition_view_mut([1, B, D]);
        let mut lse = lse.unsqueeze(2).partition_view_mut([1, B, 1]);
        let [head, i, _] = out.index();
        let slope = slopes.gather([head]);
        let queries = q.load_masked([head, i, 0]).reshape([B, D]);
        let mut highest = Tile::full([B, 1], f32::NEG_INFINITY);
        let mut total = Tile::zeros([B, 1]);
        let mut acc = Tile::zeros([B, D]);
        for p in 0..counts.gather([i]) {
            let j = lists.gather((i, p)) as usize;
            let keys = k.load_masked([head / G, j, 0]).reshape([B, D]);
            let values = v.load_masked([head / G, j, 0]).reshape([B, D]);
            let scores = modified::<B>(
                mma(queries, keys.t(), Tile::zeros([B, B])),
                (i * B) as i32,
                (j * B) as i32,
                |x, distance| tanh(x / cap) * cap + slope * distance.cast::<f32>(),
                |to, from| (from <= to) & (to - from < window) & (from < t as i32),
            );
            let higher = max(highest, scores.max(1));
            // Rows that have seen nothing yet: −∞ less −∞ is no number.
            let base = select(higher == f32::NEG_INFINITY, 0.0, higher);
            let (weights, kept) = (exp(scores - base), exp(highest - base));
            total = total * kept + weights.sum(1);
            acc = mma(weights.cast::<bf16>(), values, acc * kept);
            highest = higher;
        }
        out.store_masked((acc / total).cast::<bf16>().reshape([1, B, D]));
        lse.store_masked((highest + log(total)).reshape([1, B, 1]));
    }

    /// The derivatives of a block of keys and of values, from the blocks of queries that see it.
    #[tile_kernel]
    pub(super) fn backward<const B: usize, const D: usize, const G: usize>(
        q: &Tensor<bf16, { G * h }, t, D>,
        k: &Tensor<bf16, h, t, D>,
        v: &Tensor<bf16, h, t, D>,
        gradient: &Tensor<bf16, { G * h }, t, D>,
        lse: &Tensor<f32, { G * h }, t>,
        delta: &Tensor<f32, { G * h }, t>,
        counts: &Tensor<i32, { t.div_ceil(B) }>,
        lists: &Tensor<i32, { t.div_ceil(B) }, l>,
        slopes: &Tensor<f32, { G * h }>,
        cap: f32,
        window: i32,
        dk: &mut Tensor<f32, h, t, D>,
        dv: &mut Tensor<f32, h, t, D>,
    ) {
        let q = q.partition_view([1, B, D]);
        let gradient = gradient.partition_view([1, B, D]);
        let lse = lse.partition_view([1, B]);
        let delta = delta.partition_view([1, B]);
        let mut dk = dk.partition_view_mut([1, B, D]);
        let mut dv = dv.partition_view_mut([1, B, D]);
        let [head, j, _] = dk.index();
        let keys = k.partition_view([1, B, D]).load_masked([head, j, 0]).reshape([B, D]);
        let values = v.partition_view([1, B, D]).load_masked([head, j, 0]).reshape([B, D]);
        let (mut of_keys, mut of_values) = (Tile::zeros([B, D]), Tile::zeros([B, D]));
        for e in head * G..(head + 1) * G {
            let slope = slopes.gather([e]);
            for p in 0..counts.gather([j]) {
                let i = lists.gather((j, p)) as usize;
                let queries = q.load_masked([e, i, 0]).reshape([B, D]);
                let gradients = gradient.load_masked([e, i, 0]).reshape([B, D]);
                let capped = tanh(mma(queries, keys.t(), Tile::zeros([B, B])) / cap);
                let scores = modified::<B>(
                    capped,
                    (i * B) as i32,
                    (j * B) as i32,
                    |x, distance| x * cap + slope * distance.cast::<f32>(),
                    |to, from| (from <= to) & (to - from < window) & (to < t as i32),
                );
                let weights = exp(scores - lse.load_masked([e, i]).reshape([B, 1]));
                of_values = mma(weights.cast::<bf16>().t(), gradients, of_values);
                let of_weights = mma(gradients, values.t(), Tile::zeros([B, B]));
                let change = of_weights - delta.load_masked([e, i]).reshape([B, 1]);
                let of_scores = weights * change * (1.0 - capped * capped);
                of_keys = mma(of_scores.cast::<bf16>().t(), queries, of_keys);
            }
        }
        dk.store_masked(of_keys.reshape([1, B, D]));
        dv.store_masked(of_values.reshape([1, B, D]));
    }
}

use kernels::*;

/// How many blocks each block has, and which.
fn listed(blocks: usize, is_seen: impl Fn(usize, usize) -> bool) -> (Vec<i32>, Vec<i32>) {
    let (mut counts, mut lists) = (vec![], vec![0; blocks * blocks]);
    for (i, list) in lists.chunks_mut(blocks).enumerate() {
        // From the last one back, so that no order of turns is that of the tiles.
        let seen: Vec<usize> = (0..blocks).rev().filter(|&j| is_seen(i, j)).collect();
        counts.push(seen.len() as i32);
        list.iter_mut().zip(seen).for_each(|(place, j)| *place = j as i32);
    }
    (counts, lists)
}

#[test]
fn blocks_on_a_list_are_attended_to_and_get_their_derivatives() {
    let (h, g, t, d, block) = (1, 2, 200, 64, 64);
    let (heads, cap, window) = (h * g, 2.0, 70);
    let [q, gradient] = [1, 2].map(|seed| numbers::<bf16>(heads * t * d, seed));
    let [k, v] = [3, 4].map(|seed| numbers::<bf16>(h * t * d, seed));
    let slopes: Vec<f32> = (1..=heads).map(|i| 0.5f32.powi(i as i32 + 4)).collect();
    let (mut out, mut lse, mut delta) = (vec![0.0; heads * t * d], vec![], vec![]);
    let (mut dk, mut dv) = (vec![0.0; h * t * d], vec![0.0; h * t * d]);
    let dot = |a: &[bf16], b: &[bf16]| a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>();
    for (row, out) in out.chunks_mut(d).enumerate() {
        let (head, i) = (row / t, row % t);
        let (query, own) = (&q[row * d..][..d], &gradient[row * d..][..d]);
        let keys = (i + 1).saturating_sub(window)..=i;
        let place = |j: usize| (head / g * t + j) * d;
        let capped = |j: usize| (dot(query, &k[place(j)..][..d]) / cap).tanh();
        let score = |j: usize| capped(j) * cap - f64::from(slopes[head]) * (i - j) as f64;
        let total: f64 = keys.clone().map(|j| score(j).exp()).sum();
        let weight = |j: usize| score(j).exp() / total;
        for (e, x) in out.iter_mut().enumerate() {
            *x = keys.clone().map(|j| weight(j) * v[place(j) + e].to_f64()).sum();
        }
        lse.push(total.ln());
        delta.push(out.iter().zip(own).map(|(x, gradient)| x * gradient.to_f64()).sum::<f64>());
        for j in keys {
            let change = dot(own, &v[place(j)..][..d]) - delta[row];
            let of_score = weight(j) * change * (1.0 - capped(j).powi(2));
            for e in 0..d {
                dk[place(j) + e] += of_score * query[e].to_f64();
                dv[place(j) + e] += weight(j) * own[e].to_f64();
            }
        }
    }
    let is_seen = |i: usize, j: usize| j <= i && j * block + block + window > i * block + 1;
    let (counts, lists) = listed(4, is_seen);
    check_kernel!(attention<B = 64, D = 64, G = 2>(
        input q: (q, [heads, t, d]), input k: (k, [h, t, d]), input v: (v, [h, t, d]),
        input counts: (counts, [4]), input lists: (lists, [4, 4]), input slopes: (slopes, [heads]),
        number cap: (2f32), number window: (70i32),
        output out: (vec![bf16::ZERO; out.len()], [heads, t, d] => out, 8e-3),
        output lse: (vec![0f32; lse.len()], [heads, t] => lse, 1e-5),
    ));
    let [lse, delta] = [lse, delta].map(|values| values.iter().map(|&x| x as f32).collect::<Vec<f32>>());
    let (counts, lists) = listed(4, |j, i| is_seen(i, j));
    check_kernel!(backward<B = 64, D = 64, G = 2>(
        input q: (q, [heads, t, d]), input k: (k, [h, t, d]), input v: (v, [h, t, d]),
        input gradient: (gradient, [heads, t, d]), input lse: (lse, [heads, t]), input delta: (delta, [heads, t]),
        input counts: (counts, [4]), input lists: (lists, [4, 4]), input slopes: (slopes, [heads]),
        number cap: (2f32), number window: (70i32),
        output dk: (vec![0f32; dk.len()], [h, t, d] => dk, 4e-3),
        output dv: (vec![0f32; dv.len()], [h, t, d] => dv, 5e-3),
    ));
}
