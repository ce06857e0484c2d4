//! Kernels of rows: what is computed of an element depends on its whole row.

use tile::prelude::*;

/// Softmax of rows of `W` elements, one per block; of 131072 on Hopper one per cluster.
#[tile_kernel(instances(W = 8192 | 131072))]
pub(crate) fn softmax<const W: usize>(x: &Tensor<bf16, m, W>, y: &mut Tensor<bf16, m, W>) {
    let x = x.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, W]);
    let row = x.load_masked(y.index()).cast::<f32>();
    // Arithmetic may take no longer than reading and writing an element takes memory: a power of two is one instruction
    // where one of e is seven, and a product less than a division.
    let log2_e = std::f32::consts::LOG2_E;
    let scaled = exp2(row.mul_add(log2_e, row.max(1) * -log2_e));
    y.store_masked((scaled * (1.0 / scaled.sum(1))).cast::<bf16>());
}

/// The largest element of each row, and Σ exp(x − largest): what the softmax of rows needs that are read a second time.
/// Read in pieces of `B` elements: few, because each has a largest element and a sum of its own in registers, and
/// these decide how many reads are on their way.
#[tile_kernel(where(n % B == 0), instances(B = 1024))]
pub(crate) fn softmax_statistics<const B: usize>(
    x: &Tensor<bf16, m, n>,
    largest: &mut Tensor<f32, m, 1>,
    sums: &mut Tensor<f32, m, 1>,
) {
    let x = x.partition_view([1, B]);
    let mut largest = largest.partition_view_mut([1, 1]);
    let mut sums = sums.partition_view_mut([1, 1]);
    let [i, _] = largest.index();
    let mut most = Tile::full([1, B], f32::NEG_INFINITY);
    let mut sum = Tile::<f32, 2>::zeros([1, B]);
    for p in 0..x.tiles(1) {
        let piece = x.load_masked([i, p]).cast::<f32>();
        // One of what the sum and its new part are scaled by is 1: one power for both.
        let smaller = exp2(abs(piece - most) * -std::f32::consts::LOG2_E);
        sum = select(piece > most, sum.mul_add(smaller, 1.0), sum + smaller);
        most = max(most, piece);
    }
    let all = most.max(1);
    largest.store_masked(all);
    sums.store_masked((sum * exp(most - all)).sum(1));
}

/// Softmax of rows whose [`softmax_statistics`] are known.
#[tile_kernel(instances(B = 4096))]
pub(crate) fn softmax_scaled<const B: usize>(
    x: &Tensor<bf16, m, n>,
    largest: &Tensor<f32, m, 1>,
    sums: &Tensor<f32, m, 1>,
    y: &mut Tensor<bf16, m, n>,
) {
    let x = x.partition_view([1, B]);
    let largest = largest.partition_view([1, 1]);
    let sums = sums.partition_view([1, 1]);
    let mut y = y.partition_view_mut([1, B]);
    let [i, p] = y.index();
    let scaled = exp(x.load_masked([i, p]).cast::<f32>() - largest.load_masked([i, 0]));
    y.store_masked((scaled * (1.0 / sums.load_masked([i, 0]))).cast::<bf16>());
}

/// y = x / √(mean(x²) + 10⁻⁶) · weight of rows of `W` elements, one per block.
#[tile_kernel(instances(W = 8192))]
pub(crate) fn rmsnorm<const W: usize>(
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
#[tile_kernel(instances(B = 4096))]
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

/// The sum of all elements by one block, in pieces of `B`: of a long vector, the sum of its rows' sums.
#[tile_kernel(instances(B = 4096))]
pub(crate) fn sum_all<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, 1>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([1]);
    let mut sums = Tile::<f32, 1>::zeros([B]);
    for p in 0..x.tiles(0) {
        sums += x.load_masked([p]);
    }
    y.store_masked(sums.sum(0));
}
