//! What CUDA's kernels ask of their threads.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let view = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = thread_idx(0) + block_idx(0) * block_dim(0);
    syncthreads();
    let x = load(view, i);
    store(y, x);
    y.store_masked(view.load_masked(y.index()));
}

#[tile_kernel]
fn fields<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let i = block_idx.x;
    let j = blockIdx.x * blockDim.x + threadIdx.x;
    y.store_masked(x.load_masked([i + j]));
}

fn main() {}
