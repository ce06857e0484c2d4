//! What `cargo xtask bench layout` runs: the time of single operations, each the median of many batches, beside a
//! reference of the same run, one allocation of 64 bytes.

#![allow(clippy::unwrap_used, reason = "the operands are written here")]

use std::hint::black_box;
use std::time::Instant;
use tile_layout::linear::{
    Access, Conversion, Dim, LinearLayout, MatrixShape, Operand, SharedMemory, mma_sync, optimal_layout,
    search_swizzle,
};
use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
use tile_layout::{Layout, Movement, View};

const BATCHES: usize = 101;
/// A batch lasts about this long, so that reading the clock does not count.
const BATCH_NANOSECONDS: f64 = 200_000.0;

/// Nanoseconds of one call: the median over the batches.
fn time<T>(operation: impl Fn() -> T) -> f64 {
    let batch = |calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(operation());
        }
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    let calls = (BATCH_NANOSECONDS / batch(100).max(1.0)).clamp(1.0, 100_000.0) as u32;
    let mut times: Vec<f64> = (0..BATCHES).map(|_| batch(calls)).collect();
    times.sort_by(f64::total_cmp);
    times[BATCHES / 2]
}

fn main() {
    let reference = time(|| Vec::<i64>::with_capacity(black_box(8)));
    println!("{:<58} {:>9}  {:>11}", "operation", "ns", "× reference");
    println!("{:<58} {reference:>9.1}  {:>11.1}", "reference: one allocation of 64 bytes", 1.0);
    let show = |operation: &str, nanoseconds: f64| {
        println!("{operation:<58} {nanoseconds:>9.1}  {:>11.1}", nanoseconds / reference);
    };
    algebra(&show);
    views(&show);
    linear(&show);
    symbolic(&show);
}

fn algebra(show: &impl Fn(&str, f64)) {
    let parse = |text: &str| text.parse::<Layout>().unwrap();
    let rows = parse("(128,64):(64,1)");
    let six = parse("((2,4),(4,2),(8,2)):((1,16),(2,64),(128,8))");
    let interleaved = parse("(2,3,4,5,2,3):(1,2,6,24,120,240)");
    let pairs = parse("(4,2,8):(2,8,16)");
    let threads = parse("((4,8),(2,2)):((32,1),(16,8))");
    let matrix = parse("(16,8):(1,16)");
    show("coalesce of six modes into one", time(|| black_box(&interleaved).coalesce()));
    show("coalesce of six modes that stay", time(|| black_box(&six).coalesce()));
    show("(128,64):(64,1) ∘ (4,2,8):(2,8,16)", time(|| black_box(&rows).compose(&pairs)));
    show("thread-value composition, rank 4", time(|| black_box(&matrix).compose(&threads)));
    show("six modes ∘ (4,2,8):(2,8,16)", time(|| black_box(&six).compose(&pairs)));
    show("composition by mode with (32,16)", time(|| black_box(&rows).compose([32, 16])));
    show("zipped_divide of (128,64) by (32,16)", time(|| black_box(&rows).zipped_divide([32, 16])));
    show("logical_divide of six modes by (4,4,8)", time(|| black_box(&six).logical_divide([4, 4, 8])));
    show("complement of (4,2,8):(2,8,16) to 4096", time(|| black_box(&pairs).complement(4096)));
    show("logical_product of (4,2,8):(2,8,16) and 6", time(|| black_box(&pairs).logical_product(6)));
    show("left_inverse of six modes", time(|| black_box(&interleaved).left_inverse()));
    show("upcast of (128,64):(64,1) by 8", time(|| black_box(&rows).upcast(8)));
    show("offset of a linear index, six modes", time(|| black_box(&six).get(black_box(777))));
}

fn views(show: &impl Fn(&str, f64)) {
    let image = View::row_major(&[8, 64, 64, 3]).unwrap();
    show("view: permute of rank 4", time(|| black_box(&image).permute(&[0, 3, 1, 2])));
    show("view: transpose, then flatten into one hierarchical axis", {
        let planes = image.permute(&[0, 3, 2, 1]).unwrap();
        time(|| black_box(&planes).flatten(2, 3))
    });
    show("view: pad two axes", {
        let spans = [None, Some((1, 1)), Some((1, 1)), None];
        time(|| black_box(&image).pad(&spans))
    });
    show("view: edge tile", time(|| black_box(&image).tile(&[1, 32, 48, 3], &[3, 1, 1, 0])));
}

fn linear(show: &impl Fn(&str, f64)) {
    let memory = LinearLayout::from_modes(&[(128, 64), (64, 1)]).unwrap();
    let axes = [(Dim::Axis(0), 128), (Dim::Axis(1), 64)];
    let vector: &[[u64; 2]] = &[[0, 1], [0, 2], [0, 4]];
    let rows: &[[u64; 2]] = &[[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]];
    let columns: &[[u64; 2]] = &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]];
    let access = |lanes| LinearLayout::new(&[(Dim::Register, vector), (Dim::Lane, lanes)], axes).unwrap();
    let (write, read) = (access(rows), access(columns));
    let [write, read] = [&write, &read].map(|layout| Access { layout, width: 16 });
    let shared = SharedMemory { element_bytes: 2, banks: 32 };
    show("linear: swizzle search, 128×64 of 16 bits", time(|| search_swizzle(&memory, shared, write, read)));
    show("linear: optimal layout of shared memory", time(|| optimal_layout(shared, write, read)));
    let shape = MatrixShape { m: 16, n: 8, k: 16 };
    let accumulator = mma_sync(shape, 16, Operand::Accumulator).unwrap();
    let narrow = LinearLayout::new(
        &[(Dim::Register, &[[0, 1], [0, 2]]), (Dim::Lane, &[[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]])],
        [(Dim::Axis(0), 16), (Dim::Axis(1), 8)],
    )
    .unwrap();
    show("linear: conversion of an accumulator to rows", time(|| Conversion::between(&accumulator, &narrow)));
}

fn symbolic(show: &impl Fn(&str, f64)) {
    let matrix = SymbolicLayout::row_major(("m", "k")).unwrap();
    let facts = Facts::new().sizes(["m", "k"]).multiple_of("m", 64).consistent().unwrap();
    show("symbolic: zipped_divide of (m,k) by (64,32)", {
        time(|| black_box(&matrix).zipped_divide([64, 32], &mut Obligations::collect(&facts)))
    });
}
