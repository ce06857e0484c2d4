//! The kernels that are measured, written as a user writes them: nothing here knows that a CPU runs them, and the library
//! chooses tiles.

use tile::prelude::*;

/// C = A·B, summed in f32.
#[tile_kernel(instances(T = f32 | bf16, BM = 32 | 64 | 128 | 256, BN = 32 | 64 | 128 | 256, BK = 64 | 128 | 256))]
pub(crate) fn matmul<T: Float + MmaOperand<f32>, const BM: usize, const BN: usize, const BK: usize>(
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

/// C = A·B of i8, summed in i32.
#[tile_kernel(instances(BM = 32 | 64 | 128 | 256, BN = 32 | 64 | 128 | 256, BK = 64 | 128 | 256))]
pub(crate) fn matmul_i8<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<i8, m, k>,
    b: &Tensor<i8, k, n>,
    c: &mut Tensor<i32, m, n>,
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

/// Softmax of rows of at most `COLUMNS` elements.
#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 1 | 4 | 16, COLUMNS = 1024 | 4096 | 8192))]
pub(crate) fn softmax<const ROWS: usize, const COLUMNS: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let row = x.load_masked_or(f32::NEG_INFINITY, y.index());
    let scaled = exp(row - row.max(1));
    y.store_masked(scaled / scaled.sum(1));
}

/// y = x / √(mean(x²) + 10⁻⁶) · weight, of rows of at most `COLUMNS` elements.
#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 1 | 4 | 16, COLUMNS = 1024 | 4096 | 8192))]
pub(crate) fn rmsnorm<const ROWS: usize, const COLUMNS: usize>(
    x: &Tensor<f32, m, n>,
    weight: &Tensor<f32, 1, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let weight = weight.partition_view([1, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let row = x.load_masked(y.index());
    let scale = rsqrt((row * row).sum(1) / n as f32 + 1e-6);
    y.store_masked(row * scale * weight.load_masked([0, 0]));
}

/// y = (x − mean(x)) / √(variance(x) + 10⁻⁵) · weight + bias, of rows of at most `COLUMNS` elements.
#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 1 | 4 | 16, COLUMNS = 1024 | 4096 | 8192))]
pub(crate) fn layernorm<const ROWS: usize, const COLUMNS: usize>(
    x: &Tensor<f32, m, n>,
    weight: &Tensor<f32, 1, n>,
    bias: &Tensor<f32, 1, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let weight = weight.partition_view([1, COLUMNS]);
    let bias = bias.partition_view([1, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let row = x.load_masked(y.index());
    let mean = row.sum(1) / n as f32;
    // Elements that a tile has beyond the row are 0 and don't count: E(x²) − E(x)².
    let variance = (row * row).sum(1) / n as f32 - mean * mean;
    let scaled = (row - mean) * rsqrt(variance + 1e-5);
    y.store_masked(scaled * weight.load_masked([0, 0]) + bias.load_masked([0, 0]));
}

/// y = a + b.
#[tile_kernel(instances(B = 1024 | 4096 | 16384))]
pub(crate) fn add<const B: usize>(a: &Tensor<f32, n>, b: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = y.index();
    y.store_masked(a.load_masked(i) + b.load_masked(i));
}

/// y = gelu(a + b)·c.
#[tile_kernel(instances(B = 1024 | 4096 | 16384))]
pub(crate) fn gelu_add_mul<const B: usize>(
    a: &Tensor<f32, n>,
    b: &Tensor<f32, n>,
    c: &Tensor<f32, n>,
    y: &mut Tensor<f32, n>,
) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let c = c.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = y.index();
    y.store_masked(gelu(a.load_masked(i) + b.load_masked(i)) * c.load_masked(i));
}

/// The sum of each row, read in pieces of `B` elements.
#[tile_kernel(instances(B = 128 | 256 | 1024 | 4096))]
pub(crate) fn sum_rows<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1]);
    let [i] = y.index();
    let mut sums = Tile::<f32, 2>::zeros([1, B]);
    for p in 0..x.tiles(1) {
        sums += x.load_masked([i, p]);
    }
    y.store_masked(sums.sum(1).reshape([1]));
}

/// The sum of all elements by one block: of a matrix, that of its rows' sums.
#[tile_kernel(instances(B = 1024 | 4096))]
pub(crate) fn sum_all<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, 1>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([1]);
    let mut sums = Tile::<f32, 1>::zeros([B]);
    for p in 0..x.tiles(0) {
        sums += x.load_masked([p]);
    }
    y.store_masked(sums.sum(0));
}

/// y = xᵀ.
#[tile_kernel(instances(B = 16 | 32 | 64 | 128))]
pub(crate) fn transpose<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, n, m>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, j] = y.index();
    y.store_masked(x.load_masked([j, i]).t());
}

/// The mean of four neighbours; beyond the edges there are zeros.
#[tile_kernel(instances(BM = 1 | 4 | 16, BN = 256 | 1024 | 4096))]
pub(crate) fn neighbours<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([BM, BN]);
    let at = y.index();
    let above = x.shift(0, 1).partition_view([BM, BN]).load_masked(at);
    let below = x.shift(0, -1).partition_view([BM, BN]).load_masked(at);
    let left = x.shift(1, 1).partition_view([BM, BN]).load_masked(at);
    let right = x.shift(1, -1).partition_view([BM, BN]).load_masked(at);
    y.store_masked((above + below + left + right) * 0.25);
}

/// 3 by 3, each channel by weights of its own; beyond the edges there are zeros.
#[tile_kernel(instances(BM = 1 | 4 | 8, BN = 128 | 512))]
pub(crate) fn depthwise<const BM: usize, const BN: usize>(
    x: &Tensor<f32, c, m, n>,
    weight: &Tensor<f32, c, 3, 3>,
    y: &mut Tensor<f32, c, m, n>,
) {
    let weight = weight.partition_view([1, 1, 1]);
    let mut y = y.partition_view_mut([1, BM, BN]);
    let [channel, i, j] = y.index();
    let mut sum = Tile::zeros([1, BM, BN]);
    for a in [0, 1, 2] {
        for b in [0, 1, 2] {
            let moved = x.shift(1, 1 - a).shift(2, 1 - b).partition_view([1, BM, BN]);
            sum += moved.load_masked([channel, i, j]) * weight.load([channel, a as usize, b as usize]).item();
        }
    }
    y.store_masked(sum);
}

/// Softmax of rows of 16 elements.
#[tile_kernel(instances(ROWS = 16 | 64))]
pub(crate) fn softmax_of_short_rows<const ROWS: usize>(x: &Tensor<f32, m, 16>, y: &mut Tensor<f32, m, 16>) {
    let x = x.partition_view([ROWS, 16]);
    let mut y = y.partition_view_mut([ROWS, 16]);
    let rows = x.load_masked(y.index());
    let scaled = exp(rows - rows.max(1));
    y.store_masked(scaled / scaled.sum(1));
}

/// Squared distances of points of `D` numbers from others.
#[tile_kernel(instances(BM = 1 | 16, BN = 16 | 64, D = 16))]
pub(crate) fn distances<const BM: usize, const BN: usize, const D: usize>(
    a: &Tensor<f32, m, D>,
    b: &Tensor<f32, n, D>,
    y: &mut Tensor<f32, m, n>,
) {
    let (a, b) = (a.partition_view([BM, D]), b.partition_view([BN, D]));
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let apart = a.load_masked([i, 0]).unsqueeze(1) - b.load_masked([j, 0]).unsqueeze(0);
    y.store_masked((apart * apart).sum(2).reshape([BM, BN]));
}

/// y = x·w.
#[tile_kernel(instances(BK = 16 | 64, BN = 256 | 1024 | 2048 | 4096))]
pub(crate) fn row_times_matrix<const BK: usize, const BN: usize>(
    x: &Tensor<f32, 1, k>,
    w: &Tensor<f32, k, n>,
    y: &mut Tensor<f32, 1, n>,
) {
    let (x, w) = (x.partition_view([1, BK]), w.partition_view([BK, BN]));
    let mut y = y.partition_view_mut([1, BN]);
    let [_, j] = y.index();
    let mut sum = Tile::zeros([1, BN]);
    for p in 0..w.tiles(0) {
        sum = mma(x.load_masked([0, p]), w.load_masked([p, j]), sum);
    }
    y.store_masked(sum);
}

/// Attention with heads of `D` elements: softmax(q·kᵀ/√D)·v, where `scale` is log₂(e)/√D. A block has `BM` queries and
/// goes through keys and values in pieces of `BN`.
#[tile_kernel(instances(T = f32 | bf16, D = 64, BM = 32 | 64 | 128, BN = 64 | 128 | 256))]
pub(crate) fn attention<T: Float + MmaOperand<f32>, const D: usize, const BM: usize, const BN: usize>(
    q: &Tensor<T, h, s, D>,
    k: &Tensor<T, h, t, D>,
    v: &Tensor<T, h, t, D>,
    o: &mut Tensor<f32, h, s, D>,
    scale: f32,
) {
    let q = q.partition_view([1, BM, D]);
    let k = k.partition_view([1, BN, D]);
    let v = v.partition_view([1, BN, D]);
    let mut o = o.partition_view_mut([1, BM, D]);
    let [head, i, _] = o.index();
    let query = q.load_masked([head, i, 0]).reshape([BM, D]);
    let mut most = Tile::full([BM, 1], f32::NEG_INFINITY);
    let mut sum = Tile::zeros([BM, 1]);
    let mut acc = Tile::zeros([BM, D]);
    for j in 0..k.tiles(1) {
        let key = k.load_masked([head, j, 0]).reshape([BN, D]);
        let value = v.load_masked([head, j, 0]).reshape([BN, D]);
        let scores = mma(query, key.t(), Tile::zeros([BM, BN]));
        let column = Tile::<i32, 2>::iota([1, BN], 1) + (j * BN) as i32;
        let scores = select(column < t as i32, scores, f32::NEG_INFINITY);
        let larger = max(most, scores.max(1));
        let weights = exp2(scores.mul_add(scale, larger * -scale));
        let shrink = exp2((most - larger) * scale);
        sum = sum * shrink + weights.sum(1);
        acc = mma(weights.cast::<T>(), value, acc * shrink);
        most = larger;
    }
    o.store_masked((acc * (1.0 / sum)).reshape([1, BM, D]));
}

/// y = x + 3w: a small launch.
#[tile_kernel(instances(B = 64))]
pub(crate) fn scale_add<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let w = w.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = y.index();
    y.store_masked(x.load_masked(i) + w.load_masked(i) * 3.0);
}
