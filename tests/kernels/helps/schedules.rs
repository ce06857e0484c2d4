//! What an attribute says of how GPUs schedule a kernel: results are as without it.

use super::whole::check_kernel;
use super::{numbers, widen};
use tile::prelude::*;

/// A product whose instances differ in nothing but their schedules.
#[tile_kernel(threads = THREADS, stages = STAGES, instances(THREADS = 64 | 128, STAGES = 2 | 3))]
fn product<const THREADS: usize, const STAGES: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let (a, b) = (a.partition_view([64, 32]), b.partition_view([32, 64]));
    let mut c = c.partition_view_mut([64, 64]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([64, 64]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

#[test]
fn schedules_of_a_product_are_a_matter_of_instances() {
    let [m, n, k] = [80, 72, 136];
    let (a, b) = (numbers::<bf16>(m * k, 1), numbers::<bf16>(k * n, 2));
    let (wide_a, wide_b) = (widen(&a), widen(&b));
    let term = |at: usize, p: usize| wide_a[at / n * k + p] * wide_b[p * n + at % n];
    let c: Vec<f64> = (0..m * n).map(|at| (0..k).map(|p| term(at, p)).sum()).collect();
    macro_rules! check {
        ($threads:literal, $stages:literal) => {
            check_kernel!(product<THREADS = $threads, STAGES = $stages>(
                input a: (a, [m, k]), input b: (b, [k, n]), output c: (vec![0f32; m * n], [m, n] => c, 1e-5),
            ));
        };
    }
    check!(64, 2);
    check!(64, 3);
    check!(128, 2);
    check!(128, 3);
}

/// Rows of which two blocks are to run on a multiprocessor at once, in blocks of a few threads.
#[tile_kernel(threads = 64, occupancy = 2)]
fn centred(x: &Tensor<f32, m, 300>, y: &mut Tensor<f32, m, 300>) {
    let mut y = y.partition_view_mut([1, 300]);
    let row = x.partition_view([1, 300]).load_masked(y.index());
    y.store_masked(row - row.sum(1) / 300.0);
}

#[test]
fn rows_of_few_threads_are_rows() {
    let x = numbers::<f32>(3 * 300, 3);
    let mean = |row: usize| x[row * 300..][..300].iter().map(|&x| f64::from(x)).sum::<f64>() / 300.0;
    let y: Vec<f64> = (0..900).map(|at| f64::from(x[at]) - mean(at / 300)).collect();
    check_kernel!(centred<>(input x: (x, [3, 300]), output y: (vec![0f32; 900], [3, 300] => y, 1e-5)));
}
