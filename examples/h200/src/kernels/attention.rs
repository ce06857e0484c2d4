//! Attention: of all queries, and of one query with the keys and values of everything before it.

use tile::prelude::*;

/// Attention with heads of `D` elements. `g` heads of keys and values serve `h` heads of queries. A block has `BM`
/// queries, 64 for however few, because tensor cores take 64 rows, and goes through keys and values in pieces of `BN`.
/// `scale` is log₂(e)/√D: powers of two are what processors have.
#[tile_kernel(instances(D = 128, BM = 128 | 64, BN = 128))]
pub(crate) fn attention<const D: usize, const BM: usize, const BN: usize>(
    q: &Tensor<bf16, h, s, D>,
    k: &Tensor<bf16, g, t, D>,
    v: &Tensor<bf16, g, t, D>,
    o: &mut Tensor<bf16, h, s, D>,
    scale: f32,
) {
    let q = q.partition_view([1, BM, D]);
    let k = k.partition_view([1, BN, D]);
    let v = v.partition_view([1, BN, D]);
    let mut o = o.partition_view_mut([1, BM, D]);
    let [head, i, _] = o.index();
    let shared = head / (h / g);
    let query = q.load_masked([head, i, 0]).reshape([BM, D]);
    let mut most = Tile::full([BM, 1], f32::NEG_INFINITY);
    let mut sum = Tile::zeros([BM, 1]);
    let mut acc = Tile::zeros([BM, D]);
    for j in 0..k.tiles(1) {
        let key = k.load_masked([shared, j, 0]).reshape([BN, D]);
        let value = v.load_masked([shared, j, 0]).reshape([BN, D]);
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let scores = select(column < t as i32, scores, f32::NEG_INFINITY);
        let larger = max(most, scores.max(1));
        let weights = exp2(scores.mul_add(scale, larger * -scale));
        let shrink = exp2((most - larger) * scale);
        sum = sum * shrink + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), value, acc * shrink);
        most = larger;
    }
    o.store_masked((acc * (1.0 / sum)).cast::<bf16>().reshape([1, BM, D]));
}

/// [`attention`] in which a query sees the keys up to its own place.
#[tile_kernel(where(BM % BN == 0), instances(D = 128, BM = 128, BN = 128; D = 64, BM = 128, BN = 128))]
pub(crate) fn causal<const D: usize, const BM: usize, const BN: usize>(
    q: &Tensor<bf16, h, s, D>,
    k: &Tensor<bf16, g, s, D>,
    v: &Tensor<bf16, g, s, D>,
    o: &mut Tensor<bf16, h, s, D>,
    scale: f32,
) {
    let q = q.partition_view([1, BM, D]);
    let k = k.partition_view([1, BN, D]);
    let v = v.partition_view([1, BN, D]);
    let mut o = o.partition_view_mut([1, BM, D]);
    let [head, i, _] = o.index();
    let shared = head / (h / g);
    let query = q.load_masked([head, i, 0]).reshape([BM, D]);
    let row = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let mut most = Tile::full([BM, 1], f32::NEG_INFINITY);
    let mut sum = Tile::zeros([BM, 1]);
    let mut acc = Tile::zeros([BM, D]);
    for j in 0..(i + 1) * (BM / BN) {
        let key = k.load_masked([shared, j, 0]).reshape([BN, D]);
        let value = v.load_masked([shared, j, 0]).reshape([BN, D]);
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let scores = select(column <= row, scores, f32::NEG_INFINITY);
        let larger = max(most, scores.max(1));
        let weights = exp2(scores.mul_add(scale, larger * -scale));
        let shrink = exp2((most - larger) * scale);
        sum = sum * shrink + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), value, acc * shrink);
        most = larger;
    }
    o.store_masked((acc * (1.0 / sum)).cast::<bf16>().reshape([1, BM, D]));
}

/// [`attention`] of `r` queries that share their keys and values, over one of `p` parts of these, where else most
/// multiprocessors had nothing to do: sums of values that are weighted relative to the part's largest score, the sums of
/// the weights, and the largest scores. A part has `SPAN` keys, the last one perhaps fewer.
#[tile_kernel(where(SPAN % BN == 0), instances(D = 128, BM = 64, BN = 128, SPAN = 4096))]
pub(crate) fn decode_part<const D: usize, const BM: usize, const BN: usize, const SPAN: usize>(
    q: &Tensor<bf16, h, r, D>,
    k: &Tensor<bf16, h, t, D>,
    v: &Tensor<bf16, h, t, D>,
    weighted: &mut Tensor<f32, h, p, r, D>,
    sums: &mut Tensor<f32, h, p, r, 1>,
    largest: &mut Tensor<f32, h, p, r, 1>,
    scale: f32,
) {
    let q = q.partition_view([1, BM, D]);
    let k = k.partition_view([1, BN, D]);
    let v = v.partition_view([1, BN, D]);
    let mut weighted = weighted.partition_view_mut([1, 1, BM, D]);
    let mut sums = sums.partition_view_mut([1, 1, BM, 1]);
    let mut largest = largest.partition_view_mut([1, 1, BM, 1]);
    let [head, part, i, _] = weighted.index();
    let query = q.load_masked([head, i, 0]).reshape([BM, D]);
    let mut most = Tile::full([BM, 1], f32::NEG_INFINITY);
    let mut sum = Tile::zeros([BM, 1]);
    let mut acc = Tile::zeros([BM, D]);
    let first = part * (SPAN / BN);
    for j in first..first + SPAN / BN {
        let key = k.load_masked([head, j, 0]).reshape([BN, D]);
        let value = v.load_masked([head, j, 0]).reshape([BN, D]);
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let scores = select(column < t as i32, scores, f32::NEG_INFINITY);
        let larger = max(most, scores.max(1));
        let weights = exp2(scores.mul_add(scale, larger * -scale));
        let shrink = exp2((most - larger) * scale);
        sum = sum * shrink + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), value, acc * shrink);
        most = larger;
    }
    weighted.store_masked(acc.reshape([1, 1, BM, D]));
    sums.store_masked(sum.reshape([1, 1, BM, 1]));
    largest.store_masked(most.reshape([1, 1, BM, 1]));
}

/// Joins what [`decode_part`] found in at most `P` parts.
#[tile_kernel(instances(D = 128, P = 16))]
pub(crate) fn decode_join<const D: usize, const P: usize>(
    weighted: &Tensor<f32, h, p, r, D>,
    sums: &Tensor<f32, h, p, r, 1>,
    largest: &Tensor<f32, h, p, r, 1>,
    o: &mut Tensor<bf16, h, r, D>,
    scale: f32,
) {
    let weighted = weighted.partition_view([1, P, 1, D]);
    let sums = sums.partition_view([1, P, 1, 1]);
    let largest = largest.partition_view([1, P, 1, 1]);
    let mut o = o.partition_view_mut([1, 1, D]);
    let [head, i, _] = o.index();
    let most = largest.load_masked_or(f32::NEG_INFINITY, [head, 0, i, 0]).reshape([P, 1]);
    let shrink = exp2((most - most.max(0)) * scale);
    let sum = (sums.load_masked([head, 0, i, 0]).reshape([P, 1]) * shrink).sum(0);
    let acc = (weighted.load_masked([head, 0, i, 0]).reshape([P, D]) * shrink).sum(0);
    o.store_masked((acc / sum).cast::<bf16>().reshape([1, 1, D]));
}
