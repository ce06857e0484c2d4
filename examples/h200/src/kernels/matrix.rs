//! Matrix products: of large factors, of few rows, with an epilogue, and of f8.

use tile::prelude::*;

/// C = A·B, summed in f32.
#[tile_kernel(instances(BM = 128, BN = 256, BK = 64; BM = 64, BN = 128, BK = 64))]
pub(crate) fn gemm<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<bf16, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc.cast::<bf16>());
}

/// C = A·Bᵀ, summed in f32.
#[tile_kernel(instances(BM = 128, BN = 256, BK = 64))]
pub(crate) fn gemm_nt<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, n, k>,
    c: &mut Tensor<bf16, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BN, BK]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([j, p]).t(), acc);
    }
    c.store_masked(acc.cast::<bf16>());
}

/// C = gelu(A·B + bias) + residual, summed in f32.
#[tile_kernel(instances(BM = 128, BN = 256, BK = 64))]
pub(crate) fn linear<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    bias: &Tensor<bf16, 1, n>,
    residual: &Tensor<bf16, m, n>,
    c: &mut Tensor<bf16, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let bias = bias.partition_view([1, BN]);
    let residual = residual.partition_view([BM, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    let sum = acc + bias.load_masked([0, j]).cast::<f32>();
    c.store_masked((gelu(sum) + residual.load_masked([i, j]).cast::<f32>()).cast::<bf16>());
}

/// C = scale·A·Bᵀ of f8 factors, summed in f32, or in the bits that tensor cores keep.
#[tile_kernel(instances(BM = 128, BN = 256, BK = 128, FAST = false | true), fast_accumulation = FAST)]
pub(crate) fn gemm_f8<const BM: usize, const BN: usize, const BK: usize, const FAST: bool>(
    a: &Tensor<f8e4m3fn, m, k>,
    b: &Tensor<f8e4m3fn, n, k>,
    c: &mut Tensor<bf16, m, n>,
    scale: f32,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BN, BK]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([j, p]).t(), acc);
    }
    c.store_masked((acc * scale).cast::<bf16>());
}

/// y = W·x: each block has `BN` rows of W. Tensor cores take eight columns, of which seven are zero here: that costs nothing
/// where reading W takes all the time, and tiles of W are brought ahead as those of any product are.
#[tile_kernel(instances(BN = 64, BK = 256))]
pub(crate) fn gemv<const BN: usize, const BK: usize>(
    x: &Tensor<bf16, 1, k>,
    w: &Tensor<bf16, n, k>,
    y: &mut Tensor<bf16, n, 1>,
) {
    let x = x.partition_view([8, BK]);
    let w = w.partition_view([BN, BK]);
    let mut y = y.partition_view_mut([BN, 1]);
    let [j, _] = y.index();
    let mut acc = Tile::<f32, 2>::zeros([BN, 8]);
    for p in 0..w.tiles(1) {
        acc = mma(w.load_masked([j, p]), x.load_masked([0, p]).t(), acc);
    }
    y.store_masked(acc.sum(1).cast::<bf16>());
}

/// C = X·Wᵀ for at most `BM` rows of X. W is the left factor, because tensor cores take 64 rows of it.
#[tile_kernel(instances(BM = 16, BN = 64, BK = 128))]
pub(crate) fn skinny<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, m, k>,
    w: &Tensor<bf16, n, k>,
    c: &mut Tensor<bf16, m, n>,
) {
    let x = x.partition_view([BM, BK]);
    let w = w.partition_view([BN, BK]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::<f32, 2>::zeros([BN, BM]);
    for p in 0..w.tiles(1) {
        acc = mma(w.load_masked([j, p]), x.load_masked([i, p]).t(), acc);
    }
    c.store_masked(acc.t().cast::<bf16>());
}
