//! What threads exchange values with, and other names of CUDA and NumPy.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, starts: &Tensor<i32, 1>, y: &mut Tensor<f32, n>) {
    let start = starts.partition_view([1]).load([0]);
    let x = x.partition_view([B]).load_masked([start]);
    let mut y = y.partition_view_mut([B]);
    let shared = shared_memory([B]);
    __syncthreads();
    y.store_masked(fma(x, x.slice(0, 4), x));
}

fn main() {}
