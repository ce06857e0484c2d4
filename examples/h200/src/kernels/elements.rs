//! Kernels of elements that don't depend on each other.

use tile::prelude::*;

/// y = gelu(a + b)·c, computed in f32.
#[tile_kernel(instances(B = 4096))]
pub(crate) fn gelu_fused<const B: usize>(
    a: &Tensor<f16, n>,
    b: &Tensor<f16, n>,
    c: &Tensor<f16, n>,
    y: &mut Tensor<f16, n>,
) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let c = c.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let sum = a.load_masked([i]).cast::<f32>() + b.load_masked([i]).cast::<f32>();
    y.store_masked((gelu(sum) * c.load_masked([i]).cast::<f32>()).cast::<f16>());
}

/// y = xᵀ.
#[tile_kernel(instances(T = f32, B = 64; T = bf16, B = 128))]
pub(crate) fn transpose<T: Number, const B: usize>(x: &Tensor<T, m, n>, y: &mut Tensor<T, n, m>) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, j] = y.index();
    y.store_masked(x.load_masked([j, i]).t());
}

/// Random numbers of the standard normal distribution, different ones for each `stream`.
#[tile_kernel(instances(T = f8e4m3fn, B = 1024; T = bf16, B = 1024; T = f16, B = 1024; T = f32, B = 1024))]
pub(crate) fn normal<T: Float, const B: usize>(y: &mut Tensor<T, n>, stream: u64) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(Tile::random_normal([B], stream, (i * B) as u64).cast::<T>());
}
