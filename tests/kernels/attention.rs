//! Derivatives of causal attention. Each loaded tile is a factor of two products, which read it in either direction.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// dk and dv of 64 keys: P and its derivative have a row for each query, and are multiplied transposed.
#[tile_kernel]
fn keys_and_values<const B: usize, const D: usize>(
    q: &Tensor<bf16, h, l, D>,
    k: &Tensor<bf16, g, s, D>,
    v: &Tensor<bf16, g, s, D>,
    dout: &Tensor<bf16, h, l, D>,
    lse: &Tensor<f32, h, l>,
    delta: &Tensor<f32, h, l>,
    dk: &mut Tensor<bf16, g, s, D>,
    dv: &mut Tensor<bf16, g, s, D>,
    scale: f32,
) {
    let q = q.partition_view([1, B, D]);
    let dout = dout.partition_view([1, B, D]);
    let (lse, delta) = (lse.partition_view([1, B]), delta.partition_view([1, B]));
    let mut dk = dk.partition_view_mut([1, B, D]);
    let mut dv = dv.partition_view_mut([1, B, D]);
    let [shared, j, _] = dk.index();
    let keys = k.partition_view([1, B, D]).load_masked([shared, j, 0]).reshape([B, D]);
    let values = v.partition_view([1, B, D]).load_masked([shared, j, 0]).reshape([B, D]);
    let (mut dkeys, mut dvalues) = (Tile::<f32, 2>::zeros([B, D]), Tile::<f32, 2>::zeros([B, D]));
    for own in 0..h / g {
        let head = shared * (h / g) + own;
        for i in j..q.tiles(1) {
            let queries = q.load_masked([head, i, 0]).reshape([B, D]);
            let douts = dout.load_masked([head, i, 0]).reshape([B, D]);
            let lse = lse.load_masked_or(f32::INFINITY, [head, i]).reshape([B, 1]);
            let delta = delta.load_masked([head, i]).reshape([B, 1]);
            let scores = mma(queries, keys.t(), Tile::zeros([B, B])) * scale;
            let row = Tile::<i32, 2>::iota([B, 1], 0) + (i * B) as i32;
            let column = Tile::<i32, 2>::iota([1, B], 1) + (j * B) as i32;
            let p = select(row >= column, exp(scores - lse), 0.0);
            dvalues = mma(p.cast::<bf16>().t(), douts, dvalues);
            let dp = mma(douts, values.t(), Tile::zeros([B, B]));
            let ds = (p * (dp - delta) * scale).cast::<bf16>();
            dkeys = mma(ds.t(), queries, dkeys);
        }
    }
    dk.store_masked(dkeys.cast::<bf16>().reshape([1, B, D]));
    dv.store_masked(dvalues.cast::<bf16>().reshape([1, B, D]));
}

/// dq of 64 queries: a tile of keys is multiplied along its rows for the scores, and down its columns for dq.
#[tile_kernel]
fn queries<const B: usize, const D: usize>(
    q: &Tensor<bf16, h, l, D>,
    k: &Tensor<bf16, g, s, D>,
    v: &Tensor<bf16, g, s, D>,
    dout: &Tensor<bf16, h, l, D>,
    lse: &Tensor<f32, h, l>,
    delta: &Tensor<f32, h, l>,
    dq: &mut Tensor<bf16, h, l, D>,
    scale: f32,
) {
    let mut dq = dq.partition_view_mut([1, B, D]);
    let [head, i, _] = dq.index();
    let queries = q.partition_view([1, B, D]).load_masked([head, i, 0]).reshape([B, D]);
    let douts = dout.partition_view([1, B, D]).load_masked([head, i, 0]).reshape([B, D]);
    let lse = lse.partition_view([1, B]).load_masked_or(f32::INFINITY, [head, i]).reshape([B, 1]);
    let delta = delta.partition_view([1, B]).load_masked([head, i]).reshape([B, 1]);
    let (k, v) = (k.partition_view([1, B, D]), v.partition_view([1, B, D]));
    let row = Tile::<i32, 2>::iota([B, 1], 0) + (i * B) as i32;
    let mut sums = Tile::<f32, 2>::zeros([B, D]);
    for j in 0..i + 1 {
        let keys = k.load_masked([head / (h / g), j, 0]).reshape([B, D]);
        let values = v.load_masked([head / (h / g), j, 0]).reshape([B, D]);
        let scores = mma(queries, keys.t(), Tile::zeros([B, B])) * scale;
        let column = Tile::<i32, 2>::iota([1, B], 1) + (j * B) as i32;
        let p = select(row >= column, exp(scores - lse), 0.0);
        let dp = mma(douts, values.t(), Tile::zeros([B, B]));
        sums = mma((p * (dp - delta) * scale).cast::<bf16>(), keys, sums);
    }
    dq.store_masked(sums.cast::<bf16>().reshape([1, B, D]));
}

const HEADS: usize = 2;
const LENGTH: usize = 130;
const DEPTH: usize = 64;
const SCALE: f32 = 0.125;

/// What the loops below make of attention of two heads that share keys and values.
struct Derivatives {
    lse: Vec<f32>,
    delta: Vec<f32>,
    dq: Vec<f64>,
    dk: Vec<f64>,
    dv: Vec<f64>,
}

/// From `q` and `dout` of `[HEADS, LENGTH, DEPTH]`, `k` and `v` of `[1, LENGTH, DEPTH]`, in f64.
fn derivatives([q, k, v, dout]: [&[bf16]; 4], scale: f64) -> Derivatives {
    let dot = |a: &[bf16], i: usize, b: &[bf16], j: usize| -> f64 {
        (0..DEPTH).map(|p| a[i * DEPTH + p].to_f64() * b[j * DEPTH + p].to_f64()).sum()
    };
    let zeros = |rows: usize| vec![0.0; rows * DEPTH];
    let (mut dq, mut dk, mut dv) = (zeros(HEADS * LENGTH), zeros(LENGTH), zeros(LENGTH));
    let (mut lses, mut deltas) = (Vec::new(), Vec::new());
    for row in 0..HEADS * LENGTH {
        let seen = 0..row % LENGTH + 1;
        let scores: Vec<f64> = seen.clone().map(|j| dot(q, row, k, j) * scale).collect();
        let lse = scores.iter().map(|score| score.exp()).sum::<f64>().ln();
        let p: Vec<f64> = scores.iter().map(|score| (score - lse).exp()).collect();
        let dp: Vec<f64> = seen.clone().map(|j| dot(dout, row, v, j)).collect();
        let delta: f64 = seen.clone().map(|j| p[j] * dp[j]).sum();
        for j in seen {
            let ds = p[j] * (dp[j] - delta) * scale;
            for e in 0..DEPTH {
                dq[row * DEPTH + e] += ds * k[j * DEPTH + e].to_f64();
                dk[j * DEPTH + e] += ds * q[row * DEPTH + e].to_f64();
                dv[j * DEPTH + e] += p[j] * dout[row * DEPTH + e].to_f64();
            }
        }
        lses.push(lse as f32);
        deltas.push(delta as f32);
    }
    Derivatives { lse: lses, delta: deltas, dq, dk, dv }
}

#[test]
fn derivatives_of_attention() {
    let (all_queries, all_keys) = (HEADS * LENGTH * DEPTH, LENGTH * DEPTH);
    let [q, dout] = [1, 2].map(|seed| numbers::<bf16>(all_queries, seed));
    let [k, v] = [3, 4].map(|seed| numbers::<bf16>(all_keys, seed));
    let Derivatives { lse, delta, dq, dk, dv } = derivatives([&q, &k, &v, &dout], SCALE.into());
    let (of_queries, of_keys, of_rows) = ([HEADS, LENGTH, DEPTH], [1, LENGTH, DEPTH], [HEADS, LENGTH]);
    check_kernel!(keys_and_values<B = 64, D = 64>(
        input q: (q, of_queries), input k: (k, of_keys), input v: (v, of_keys), input dout: (dout, of_queries),
        input lse: (lse, of_rows), input delta: (delta, of_rows),
        output dk: (vec![bf16::ZERO; all_keys], of_keys => dk, 2e-3),
        output dv: (vec![bf16::ZERO; all_keys], of_keys => dv, 5e-3), number scale: (SCALE),
    ));
    check_kernel!(queries<B = 64, D = 64>(
        input q: (q, of_queries), input k: (k, of_keys), input v: (v, of_keys), input dout: (dout, of_queries),
        input lse: (lse, of_rows), input delta: (delta, of_rows),
        output dq: (vec![bf16::ZERO; all_queries], of_queries => dq, 2e-3), number scale: (SCALE),
    ));
}
