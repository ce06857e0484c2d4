//! The kernels whose machine code `docs/codegen-budgets.md` records, beside those of the examples: one per pattern
//! that code generation treats in its own way. Read as text, as a build script reads a crate's kernels.
//!
//! Their sizes are such that no element is masked; the examples' kernels are masked.

use tile::prelude::*;

/// y = a + b.
#[tile_kernel(where(n % B == 0), instances(B = 1024))]
fn add<const B: usize>(a: &Tensor<f32, n>, b: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(a.load_masked([i]) + b.load_masked([i]));
}

/// y = gelu(a + b)·c of bf16, computed in f32.
#[tile_kernel(where(n % B == 0), instances(B = 2048))]
fn gelu_fused<const B: usize>(
    a: &Tensor<bf16, n>,
    b: &Tensor<bf16, n>,
    c: &Tensor<bf16, n>,
    y: &mut Tensor<bf16, n>,
) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let c = c.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let sum = a.load_masked([i]).cast::<f32>() + b.load_masked([i]).cast::<f32>();
    y.store_masked((gelu(sum) * c.load_masked([i]).cast::<f32>()).cast::<bf16>());
}

/// Softmax of rows, one per block.
#[tile_kernel(instances(W = 4096))]
fn softmax_row<const W: usize>(x: &Tensor<f32, m, W>, y: &mut Tensor<f32, m, W>) {
    let x = x.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, W]);
    let row = x.load_masked(y.index());
    let scaled = exp(row - row.max(1));
    y.store_masked(scaled / scaled.sum(1));
}

/// y = x / √(mean(x²) + 10⁻⁶) · weight, one row per block.
#[tile_kernel(instances(W = 4096))]
fn rmsnorm_row<const W: usize>(
    x: &Tensor<bf16, m, W>,
    weight: &Tensor<bf16, 1, W>,
    y: &mut Tensor<bf16, m, W>,
) {
    let x = x.partition_view([1, W]);
    let weight = weight.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, W]);
    let row = x.load_masked(y.index()).cast::<f32>();
    let scale = rsqrt((row * row).mean(1) + 1e-6);
    y.store_masked((row * scale * weight.load_masked([0, 0]).cast::<f32>()).cast::<bf16>());
}

/// The sum of each row, read in pieces of `B` elements.
#[tile_kernel(where(n % B == 0), instances(B = 2048))]
fn sum_rows<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, 1]);
    let [i, _] = y.index();
    let mut sums = Tile::zeros([1, B]);
    for p in 0..x.tiles(1) {
        sums += x.load_masked([i, p]);
    }
    y.store_masked(sums.sum(1));
}

/// y = xᵀ.
#[tile_kernel(where(m % B == 0, n % B == 0), instances(B = 64))]
fn transpose<const B: usize>(x: &Tensor<bf16, m, n>, y: &mut Tensor<bf16, n, m>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, j] = y.index();
    y.store_masked(x.load_masked([j, i]).t());
}

/// C = A·B, summed in f32.
#[tile_kernel(
    where(m % BM == 0, n % BN == 0, k % BK == 0),
    instances(
        T = f32, BM = 64, BN = 64, BK = 16;
        T = bf16, BM = 128, BN = 128, BK = 64;
        T = bf16, BM = 128, BN = 256, BK = 64;
        T = f16, BM = 64, BN = 64, BK = 32
    )
)]
fn gemm<T: Float + MmaOperand<f32>, const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<T, m, k>,
    b: &Tensor<T, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

/// C = A·(W·s), with weights of 8 bits and a scale for each of their columns: a right factor that threads compute.
#[tile_kernel(
    where(m % BM == 0, n % BN == 0, k % BK == 0),
    instances(BM = 128, BN = 128, BK = 64; BM = 128, BN = 256, BK = 64)
)]
fn gemm_w8<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    w: &Tensor<i8, k, n>,
    scales: &Tensor<f32, 1, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let w = w.partition_view([BK, BN]);
    let scales = scales.partition_view([1, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let scale = scales.load_masked([0, j]);
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let weights = (w.load_masked([p, j]).cast::<f32>() * scale).cast::<bf16>();
        acc = mma(a.load_masked([i, p]), weights, acc);
    }
    c.store_masked(acc);
}

/// Linear attention with decay, in chunks of `C` steps: what queries find in a state that keys and values change.
#[tile_kernel(where(t % C == 0, e % D == 0), instances(C = 64, D = 64))]
fn linear_attention<const C: usize, const D: usize>(
    q: &Tensor<bf16, t, D>,
    k: &Tensor<bf16, t, D>,
    v: &Tensor<bf16, t, e>,
    decay: &Tensor<f32, t, 1>,
    o: &mut Tensor<bf16, t, e>,
) {
    let q = q.partition_view([C, D]);
    let k = k.partition_view([C, D]);
    let v = v.partition_view([C, D]);
    let decay = decay.partition_view([C, 1]);
    let mut o = o.partition_view_mut([C, D]).spanning([0]);
    let [_, j] = o.index();
    let (row, column) = (Tile::<i32, 2>::iota([C, 1], 0), Tile::<i32, 2>::iota([1, C], 1));
    let mut state = Tile::zeros([D, D]);
    for p in 0..q.tiles(0) {
        let (query, key, value) = (q.load_masked([p, 0]), k.load_masked([p, 0]), v.load_masked([p, j]));
        let decayed = decay.load_masked([p, 0]).cumsum(0);
        let total = decay.load_masked([p, 0]).sum(0);
        let within = select(row >= column, exp(decayed - decayed.t()), 0.0);
        let weights = mma(query, key.t(), Tile::zeros([C, C])) * within;
        let before = mma(query, state.cast::<bf16>(), Tile::zeros([C, D])) * exp(decayed);
        o.at([p]).store_masked(mma(weights.cast::<bf16>(), value, before).cast::<bf16>());
        let late = (value.cast::<f32>() * exp(total - decayed)).cast::<bf16>();
        state = mma(key.t(), late, state * exp(total));
    }
}

/// C = A·Bᵀ of 8-bit floats of two kinds, summed in f32.
#[tile_kernel(
    where(m % BM == 0, n % BN == 0, k % BK == 0),
    instances(BM = 128, BN = 128, BK = 128; BM = 128, BN = 256, BK = 128)
)]
fn gemm_nt_f8<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f8e4m3fn, m, k>,
    b: &Tensor<f8e5m2, n, k>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BN, BK]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([j, p]).t(), acc);
    }
    c.store_masked(acc);
}

/// C = A·Bᵀ of 8-bit floats with a power of two for each 32 along K.
#[tile_kernel(
    where(m % BM == 0, n % BN == 0, (32 * g) % BK == 0, BK % 32 == 0),
    instances(BM = 128, BN = 128, BK = 64)
)]
fn microscaled<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f8e4m3fn, m, { 32 * g }>,
    a_scales: &Tensor<f8e8m0fnu, m, g>,
    b: &Tensor<f8e4m3fn, n, { 32 * g }>,
    b_scales: &Tensor<f8e8m0fnu, n, g>,
    c: &mut Tensor<f32, m, n>,
) {
    let (a, a_scales) = (a.partition_view([BM, BK]), a_scales.partition_view([BM, BK / 32]));
    let (b, b_scales) = (b.partition_view([BN, BK]), b_scales.partition_view([BN, BK / 32]));
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let (left, right) = (a.load_masked([i, p]), b.load_masked([j, p]));
        let (left_scales, right_scales) = (a_scales.load_masked([i, p]), b_scales.load_masked([j, p]));
        acc = mma_scaled(left, left_scales, right.t(), right_scales.t(), acc);
    }
    c.store_masked(acc);
}

/// C = A·B of factors rounded to TF32.
#[tile_kernel(where(m % BM == 0, n % BN == 0, k % BK == 0), instances(BM = 128, BN = 128, BK = 32))]
fn gemm_tf32<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma_tf32(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

/// C = gelu(A·B + bias), summed in f32 and rounded to bf16.
#[tile_kernel(
    where(m % BM == 0, n % BN == 0, k % BK == 0),
    instances(BM = 128, BN = 128, BK = 64; BM = 128, BN = 256, BK = 64)
)]
fn linear_gelu<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    bias: &Tensor<bf16, 1, n>,
    c: &mut Tensor<bf16, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let bias = bias.partition_view([1, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    let sum = acc + bias.load_masked([0, j]).cast::<f32>();
    c.store_masked(gelu(sum).cast::<bf16>());
}

/// Causal attention with heads of 128 elements: each block has `BM` queries and goes through the keys and values up to
/// its own in pieces of `BN`.
#[tile_kernel(where(s % BM == 0, BM % BN == 0), instances(BM = 128, BN = 64))]
fn attention<const BM: usize, const BN: usize>(
    q: &Tensor<bf16, h, s, 128>,
    k: &Tensor<bf16, h, s, 128>,
    v: &Tensor<bf16, h, s, 128>,
    o: &mut Tensor<bf16, h, s, 128>,
) {
    let q = q.partition_view([1, BM, 128]);
    let k = k.partition_view([1, BN, 128]);
    let v = v.partition_view([1, BN, 128]);
    let mut o = o.partition_view_mut([1, BM, 128]);
    let [head, i, _] = o.index();
    let query = q.load_masked([head, i, 0]).reshape([BM, 128]);
    let row = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let mut most = Tile::full([BM, 1], f32::NEG_INFINITY);
    let mut sum = Tile::zeros([BM, 1]);
    let mut acc = Tile::zeros([BM, 128]);
    for j in 0..(i + 1) * (BM / BN) {
        let key = k.load_masked([head, j, 0]).reshape([BN, 128]);
        let value = v.load_masked([head, j, 0]).reshape([BN, 128]);
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        let scores = select(column <= row, scores, f32::NEG_INFINITY);
        let larger = max(most, scores.max(1));
        // log₂(e)/√128: powers of two are what processors have.
        let weights = exp2(scores.mul_add(0.12751743, larger * -0.12751743));
        let shrink = exp2((most - larger) * 0.12751743);
        sum = sum * shrink + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), value, acc * shrink);
        most = larger;
    }
    o.store_masked((acc * (1.0 / sum)).cast::<bf16>().reshape([1, BM, 128]));
}

/// Derivatives of causal attention by keys and values, with heads of `D` elements: each block has `BN` keys and values,
/// and goes through the queries that see them in pieces of `BM`.
#[tile_kernel(
    where(s % BN == 0, BN % BM == 0),
    instances(BM = 64, BN = 128, D = 64 | 128; BM = 32, BN = 128, D = 128)
)]
fn attention_keys<const BM: usize, const BN: usize, const D: usize>(
    q: &Tensor<bf16, h, s, D>,
    k: &Tensor<bf16, h, s, D>,
    v: &Tensor<bf16, h, s, D>,
    dout: &Tensor<bf16, h, s, D>,
    lse: &Tensor<f32, h, s>,
    delta: &Tensor<f32, h, s>,
    dk: &mut Tensor<bf16, h, s, D>,
    dv: &mut Tensor<bf16, h, s, D>,
    scale: f32,
) {
    let q = q.partition_view([1, BM, D]);
    let dout = dout.partition_view([1, BM, D]);
    let (lse, delta) = (lse.partition_view([1, BM]), delta.partition_view([1, BM]));
    let mut dk = dk.partition_view_mut([1, BN, D]);
    let mut dv = dv.partition_view_mut([1, BN, D]);
    let [head, j, _] = dk.index();
    let key = k.partition_view([1, BN, D]).load_masked([head, j, 0]).reshape([BN, D]);
    let value = v.partition_view([1, BN, D]).load_masked([head, j, 0]).reshape([BN, D]);
    let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
    let (mut keys, mut values) = (Tile::zeros([BN, D]), Tile::zeros([BN, D]));
    for i in j * (BN / BM)..q.tiles(1) {
        let query = q.load_masked([head, i, 0]).reshape([BM, D]);
        let dout = dout.load_masked([head, i, 0]).reshape([BM, D]);
        let lse = lse.load_masked([head, i]).reshape([BM, 1]);
        let delta = delta.load_masked([head, i]).reshape([BM, 1]);
        let row = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        // In powers of two, as `lse` is.
        let weights = select(column <= row, exp2(scores.mul_add(scale, -lse)), 0.0);
        values = mma(weights.cast::<bf16>().t(), dout, values);
        let slope = mma(dout, value.t(), Tile::zeros([BM, BN])) - delta;
        keys = mma((weights * slope).cast::<bf16>().t(), query, keys);
    }
    dk.store_masked((keys * scale).cast::<bf16>().reshape([1, BN, D]));
    dv.store_masked(values.cast::<bf16>().reshape([1, BN, D]));
}

/// Derivatives of causal attention by queries: each block has `BM` queries, and goes through the keys and values that
/// these see in pieces of `BN`.
#[tile_kernel(where(s % BM == 0, BM % BN == 0), instances(BM = 128, BN = 64))]
fn attention_queries<const BM: usize, const BN: usize>(
    q: &Tensor<bf16, h, s, 128>,
    k: &Tensor<bf16, h, s, 128>,
    v: &Tensor<bf16, h, s, 128>,
    dout: &Tensor<bf16, h, s, 128>,
    lse: &Tensor<f32, h, s>,
    delta: &Tensor<f32, h, s>,
    dq: &mut Tensor<bf16, h, s, 128>,
) {
    let k = k.partition_view([1, BN, 128]);
    let v = v.partition_view([1, BN, 128]);
    let mut dq = dq.partition_view_mut([1, BM, 128]);
    let [head, i, _] = dq.index();
    let query = q.partition_view([1, BM, 128]).load_masked([head, i, 0]).reshape([BM, 128]);
    let dout = dout.partition_view([1, BM, 128]).load_masked([head, i, 0]).reshape([BM, 128]);
    let lse = lse.partition_view([1, BM]).load_masked([head, i]).reshape([BM, 1]);
    let delta = delta.partition_view([1, BM]).load_masked([head, i]).reshape([BM, 1]);
    let row = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let mut queries = Tile::zeros([BM, 128]);
    for j in 0..(i + 1) * (BM / BN) {
        let key = k.load_masked([head, j, 0]).reshape([BN, 128]);
        let value = v.load_masked([head, j, 0]).reshape([BN, 128]);
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        let weights = select(column <= row, exp2(scores.mul_add(0.12751743, -lse)), 0.0);
        let slope = mma(dout, value.t(), Tile::zeros([BM, BN])) - delta;
        queries = mma((weights * slope).cast::<bf16>(), key, queries);
    }
    dq.store_masked((queries * 0.088388346).cast::<bf16>().reshape([1, BM, 128]));
}

/// Attention of one new token: `G` heads share one of keys and values, which it goes through in pieces of `P`.
#[tile_kernel(instances(G = 8, P = 64; G = 4, P = 64))]
fn decode<const G: usize, const P: usize>(
    q: &Tensor<bf16, b, h, G, 128>,
    k: &Tensor<bf16, b, s, h, 128>,
    v: &Tensor<bf16, b, s, h, 128>,
    sinks: &Tensor<f32, h, G>,
    o: &mut Tensor<bf16, b, h, G, 128>,
) {
    let k = k.partition_view([1, P, 1, 128]);
    let v = v.partition_view([1, P, 1, 128]);
    let mut o = o.partition_view_mut([1, 1, G, 128]);
    let [b, h, _, _] = o.index();
    let query = q.partition_view([1, 1, G, 128]).load([b, h, 0, 0]).reshape([G, 128]);
    let mut most = sinks.partition_view([1, G]).load([h, 0]).reshape([G, 1]);
    let mut sum = Tile::ones([G, 1]);
    let mut acc = Tile::zeros([G, 128]);
    for j in 0..k.tiles(1) {
        let key = k.load_masked([b, j, h, 0]).reshape([P, 128]);
        let value = v.load_masked([b, j, h, 0]).reshape([P, 128]);
        let column = Tile::<i32, 2>::iota([1, P], 1) + (j * P) as i32;
        let scores = mma(query, key.t(), Tile::zeros([G, P])) * 0.12751743;
        let scores = select(column < s as i32, scores, f32::NEG_INFINITY);
        let larger = max(most, scores.max(1));
        let (weights, shrink) = (exp2(scores - larger), exp2(most - larger));
        sum = sum * shrink + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), value, acc * shrink);
        most = larger;
    }
    o.store((acc / sum).cast::<bf16>().reshape([1, 1, G, 128]));
}

/// C = A·Bᵀ of 8-bit floats with scales for 1×128 of the left and 128×128 of the right factor. Any sizes.
#[tile_kernel(instances(BM = 64, BN = 128))]
fn blockwise_f8<const BM: usize, const BN: usize>(
    a: &Tensor<f8e4m3fn, m, k>,
    a_scales: &Tensor<f32, m, { k.div_ceil(128) }>,
    b: &Tensor<f8e4m3fn, n, k>,
    b_scales: &Tensor<f32, { n.div_ceil(128) }, { k.div_ceil(128) }>,
    c: &mut Tensor<bf16, m, n>,
) {
    let a = a.partition_view([BM, 128]);
    let b = b.partition_view([BN, 128]);
    let a_scales = a_scales.partition_view([BM, 1]);
    let b_scales = b_scales.partition_view([1, 1]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let part = mma(a.load_masked([i, p]), b.load_masked([j, p]).t(), Tile::zeros([BM, BN]));
        acc += part * a_scales.load_masked([i, p]) * b_scales.load_masked([j * BN / 128, p]);
    }
    c.store_masked(acc.cast::<bf16>());
}

/// Rows of a table that tokens name, as an embedding looks them up.
#[tile_kernel(where(k % B == 0), instances(B = 8, D = 1024))]
fn lookup<const B: usize, const D: usize>(
    table: &Tensor<bf16, v, D>,
    token: &Tensor<i32, k>,
    y: &mut Tensor<bf16, k, D>,
) {
    let mut y = y.partition_view_mut([B, D]);
    let [i, _] = y.index();
    let rows = token.unsqueeze(1).partition_view([B, 1]).load_masked([i, 0]);
    y.store_masked(table.gather([rows, Tile::<i32, 2>::iota([1, D], 1)]));
}

/// Rows that tokens write to slots of a cache.
#[tile_kernel(grid = [t / B], where(t % B == 0), instances(B = 8, D = 1024))]
fn cache<const B: usize, const D: usize>(
    x: &Tensor<bf16, t, D>,
    slot: &Tensor<i32, t>,
    y: &mut Tensor<bf16, s, D>,
) {
    let rows = slot.unsqueeze(1).partition_view([B, 1]).load_masked_or(-1, [block_id(0), 0]);
    let x = x.partition_view([B, D]).load_masked([block_id(0), 0]);
    y.atomic_view().store([rows, Tile::<i32, 2>::iota([1, D], 1)], x, Relaxed, DeviceScope);
}

/// Rows that are added to those of their tokens, as what experts made is.
#[tile_kernel(
    grid = [r / B],
    where(r % B == 0),
    instances(T = f32, B = 8, D = 1024; T = bf16, B = 8, D = 1024; T = f16, B = 8, D = 1024)
)]
fn combine<T: Float, const B: usize, const D: usize>(
    x: &Tensor<T, r, D>,
    token: &Tensor<i32, r>,
    y: &mut Tensor<T, t, D>,
) {
    let rows = token.unsqueeze(1).partition_view([B, 1]).load_masked_or(-1, [block_id(0), 0]);
    let x = x.partition_view([B, D]).load_masked([block_id(0), 0]);
    y.atomic_view().fetch_add([rows, Tile::<i32, 2>::iota([1, D], 1)], x, Relaxed, DeviceScope);
}

/// Products of experts: every `BM` rows have one, and each names the token that it is.
#[tile_kernel(
    where(r % BM == 0, n % BN == 0, k % BK == 0),
    instances(BM = 128, BN = 128, BK = 64)
)]
fn experts<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, t, k>,
    token: &Tensor<i32, r>,
    expert: &Tensor<i32, { r / BM }>,
    w: &Tensor<bf16, e, k, n>,
    y: &mut Tensor<f32, r, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let which = expert.partition_view([1]).load_masked([i]).item();
    let rows = token.unsqueeze(1).partition_view([BM, 1]).load_masked([i, 0]);
    let w = w.select(0, which as usize).partition_view([BK, BN]);
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..w.tiles(0) {
        let columns = Tile::<i32, 2>::iota([1, BK], 1) + (p * BK) as i32;
        acc = mma(x.gather([rows, columns]), w.load_masked([p, j]), acc);
    }
    y.store_masked(acc);
}

/// Products of experts where some rows have none, whose blocks have nothing to do.
#[tile_kernel(
    where(r % BM == 0, n % BN == 0, k % BK == 0),
    instances(BM = 128, BN = 128, BK = 64)
)]
fn experts_or_none<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, r, k>,
    expert: &Tensor<i32, { r / BM }>,
    w: &Tensor<bf16, e, k, n>,
    y: &mut Tensor<bf16, r, n>,
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
    y.store_masked(acc.cast());
}

/// A product of rows that indices name, whose right factor a producer can copy.
#[tile_kernel(
    where(n % 8 == 0, k % 8 == 0),
    instances(BM = 128, BN = 128, BK = 64)
)]
fn tokens<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, t, k>,
    token: &Tensor<i32, r>,
    w: &Tensor<bf16, k, n>,
    y: &mut Tensor<f32, r, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let rows = token.unsqueeze(1).partition_view([BM, 1]).load_masked_or(-1, [i, 0]);
    let w = w.partition_view([BK, BN]);
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..w.tiles(0) {
        let columns = Tile::<i32, 2>::iota([1, BK], 1) + (p * BK) as i32;
        acc = mma(x.gather([rows, columns]), w.load_masked([p, j]), acc);
    }
    y.store_masked(acc);
}

/// The experts of each token: the `K` largest of its `E` scores, and which they are.
#[tile_kernel(where(t % B == 0), instances(B = 16, E = 64, K = 8))]
fn route<const B: usize, const E: usize, const K: usize>(
    scores: &Tensor<f32, t, E>,
    weight: &mut Tensor<f32, t, K>,
    expert: &mut Tensor<i32, t, K>,
) {
    let mut weight = weight.partition_view_mut([B, K]);
    let mut expert = expert.partition_view_mut([B, K]);
    let [i, _] = weight.index();
    let (largest, which) = scores.partition_view([B, E]).load_masked([i, 0]).top_k(K, 1);
    weight.store_masked(largest);
    expert.store_masked(which);
}

/// Rows in order, one per block.
#[tile_kernel(instances(T = f32, W = 1024; T = bf16, W = 1024))]
fn sort_row<T: Number, const W: usize>(x: &Tensor<T, m, W>, y: &mut Tensor<T, m, W>) {
    let x = x.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, W]);
    y.store_masked(x.load_masked(y.index()).sort(1));
}

/// The sums of the elements up to each one, of long rows.
#[tile_kernel(where(n % W == 0), instances(W = 4096))]
fn sums_along<const W: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, W]);
    y.store_masked(x.load_masked(y.index()).cumsum(1));
}

/// The same of short columns.
#[tile_kernel(where(m % H == 0, n % 64 == 0), instances(H = 64))]
fn sums_down<const H: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([H, 64]);
    let mut y = y.partition_view_mut([H, 64]);
    y.store_masked(x.load_masked(y.index()).cumsum(0));
}
