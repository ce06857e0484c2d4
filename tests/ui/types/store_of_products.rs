//! Sums of products of bf16 are f32, and the outputs are not.

use tile::prelude::*;

#[tile_kernel]
fn product<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<bf16, m, n>,
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

#[tile_kernel]
fn of_eight_bits<const B: usize>(a: &Tensor<f8e4m3fn, n, n>, c: &mut Tensor<bf16, n, n>) {
    let a = a.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    let a = a.load_masked(c.index());
    c.store_masked(mma(a, a, Tile::zeros([B, B])));
}

#[tile_kernel]
fn of_a_parameter<T: Float + MmaOperand<f32>, const B: usize>(a: &Tensor<T, n, n>, c: &mut Tensor<T, n, n>) {
    let a = a.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    let a = a.load_masked(c.index());
    c.store_masked(mma(a, a, Tile::zeros([B, B])));
}

#[tile_kernel]
fn with_a_bias<const B: usize>(a: &Tensor<bf16, n, n>, c: &mut Tensor<bf16, n, n>) {
    let a = a.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    let bias = a.load_masked(c.index());
    let acc = mma(bias, bias, Tile::zeros([B, B]));
    c.store_masked(acc + bias);
}

fn main() {}
