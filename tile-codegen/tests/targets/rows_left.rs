//! Rows that a block leaves for the next block to store: native code in ranges of blocks against the evaluator, and against
//! blocks that run alone, which leave nothing.

use crate::kernels::SOFTMAX;
use crate::rows::{Large, number, run_at};
use crate::support::{Memory, Native, agree, close, instance, run_here, sample};
use std::ops::Range;
use tile_codegen::Options;
use tile_ir::{Array, DType, Instance, interp};
use tile_test_edit::Edit;

/// Exponentials of a piece of a row, divided by their sum, times the piece itself, plus a weight and the block's number.
fn weighted(output: DType) -> String {
    format!(
        "kernel @weighted<W>(%x: tensor<m x n x f32>, %w: tensor<1 x n x f32>, %y: mut tensor<m x n x {output}>) {{
  %vx = partition %x [1, W] : partition<m x n x f32, [1, W]>
  %vw = partition %w [1, W] : partition<1 x n x f32, [1, W]>
  %vy = partition %y [1, W] : mut partition<m x n x {output}, [1, W]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0 : index
  %pad = constant -inf : f32
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x W x f32>
  %wt = load_masked %vw[%0, %j] pad %zero : tile<1 x W x f32>
  %m = reduce max %t axis 1 : tile<1 x 1 x f32>
  %mb = broadcast %m : tile<1 x W x f32>
  %d = sub %t, %mb : tile<1 x W x f32>
  %e = exp %d : tile<1 x W x f32>
  %s = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %sb = broadcast %s : tile<1 x W x f32>
  %q = div %e, %sb : tile<1 x W x f32>
  %qt = mul %q, %t : tile<1 x W x f32>
  %qw = add %qt, %wt : tile<1 x W x f32>
  %twice = add %i, %i : index
  %which = add %twice, %j : index
  %f = cast %which : f32
  %fb = splat %f : tile<1 x W x f32>
  %r = add %qw, %fb : tile<1 x W x f32>
  %c = cast %r : tile<1 x W x {output}>
  store_masked %vy, %c
}}
"
    )
    .replace("  %c = cast %r : tile<1 x W x f32>\n", "")
    .replace("f32>\n  store_masked %vy, %c", "f32>\n  store_masked %vy, %r")
}

/// A row by the root of its squares' sum, times a weight: loops that wait for memory.
const SCALED: &str = "\
kernel @scaled<W>(%x: tensor<m x n x f32>, %w: tensor<1 x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [1, W] : partition<m x n x f32, [1, W]>
  %vw = partition %w [1, W] : partition<1 x n x f32, [1, W]>
  %vy = partition %y [1, W] : mut partition<m x n x f32, [1, W]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0 : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<1 x W x f32>
  %wt = load_masked %vw[%0, %j] pad %pad : tile<1 x W x f32>
  %sq = mul %t, %t : tile<1 x W x f32>
  %s = reduce sum %sq axis 1 : tile<1 x 1 x f32>
  %k = rsqrt %s : tile<1 x 1 x f32>
  %kb = broadcast %k : tile<1 x W x f32>
  %tk = mul %t, %kb : tile<1 x W x f32>
  %r = mul %tk, %wt : tile<1 x W x f32>
  store_masked %vy, %r
}
";

/// Exponentials of exponentials, whose row takes over the place of theirs.
const EARLY: &str = "  %a = exp %d : tile<B x W x f32>
  %w = reduce min %a axis 1 : tile<B x 1 x f32>
  %wb = broadcast %w : tile<B x W x f32>
  %b = sub %a, %wb : tile<B x W x f32>
  %e = exp %b : tile<B x W x f32>
";

/// The output after running blocks in these ranges, each with scratch memory that is full of NaN.
fn run_ranges(native: &Native, instance: &Instance, arguments: &[Array], ranges: &[Range<u64>]) -> Array {
    let memory = Memory::of(instance, arguments);
    match native {
        Native::Here(kernel) => {
            for range in ranges {
                // SAFETY: the slots are as the instance's ABI says, and point to memory of this test.
                unsafe { run_here(kernel, &memory.slots, range.clone(), u64::MAX) };
            }
        }
        // An emulator runs all blocks in one range.
        emulated => emulated.run(&memory),
    }
    memory.arrays(arguments).pop().expect("a kernel has an output")
}

/// Runs blocks in ranges of several lengths, of even and odd numbers, and one by one.
fn check(source: &str, constants: &[(&str, usize)], arguments: &[Array], tolerance: f64) {
    let instance = instance(source, constants);
    let native = Native::of(&instance, &Options::default());
    let run = |ranges: &[Range<u64>]| run_ranges(&native, &instance, arguments, ranges);
    let blocks = Memory::of(&instance, arguments).blocks;
    let alone: Vec<Range<u64>> = (0..blocks).map(|block| block..block + 1).collect();
    let alone = run(&alone);
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    close(&alone, expected.last().unwrap(), tolerance, source);
    let odd: Vec<u64> =
        (0..).map(|i| i * (i + 1) / 2).take_while(|&at| at < blocks).chain([blocks]).collect();
    let odd: Vec<Range<u64>> = odd.windows(2).map(|ends| ends[0]..ends[1]).collect();
    for ranges in [std::slice::from_ref(&(0..blocks)), &odd] {
        let together = run(ranges);
        assert_eq!(together.to_bytes(), alone.to_bytes(), "{ranges:?} of\n{source}");
    }
}

#[test]
fn ranges_of_blocks_have_the_bits_of_single_ones() {
    for (rows, columns, width) in [(11, 64, 64), (7, 61, 64), (6, 100, 64), (5, 512, 256), (1, 128, 128)] {
        let x = sample(DType::F32, &[rows, columns], 1);
        let w = sample(DType::F32, &[1, columns], 2);
        for (output, tolerance) in [(DType::F32, 1e-5), (DType::BF16, 1e-2), (DType::F64, 1e-5)] {
            let y = sample(output, &[rows, columns], 3);
            check(&weighted(output), &[("W", width)], &[x.clone(), w.clone(), y], tolerance);
        }
        let y = sample(DType::F32, &[rows, columns], 4);
        check(SCALED, &[("W", width)], &[x.clone(), w, y.clone()], 1e-5);
        let early = SOFTMAX.edit("  %e = exp %d : tile<B x W x f32>\n", EARLY);
        assert_ne!(early, SOFTMAX);
        for source in [SOFTMAX, &early] {
            check(source, &[("B", 1), ("W", width)], &[x.clone(), y.clone()], 1e-5);
        }
    }
}

/// Outputs of more than 32 MiB go past the caches, where a row begins a line; those of a few rows don't.
#[test]
fn large_outputs_have_the_bits_of_small_ones() {
    for (columns, skew) in [(1024, 0), (1024, 3)] {
        let (rows, few) = ((33 << 20) / (4 * columns), 13);
        let mut x = Large::new(rows * columns, skew);
        // SAFETY: the tensor has so many elements. Rows repeat after 13.
        (0..rows * columns).for_each(|i| unsafe { *x.place().add(i) = number(i % (few * columns)) });
        let mut weights = Large::new(columns, skew);
        // SAFETY: the tensor has so many elements.
        (0..columns).for_each(|i| unsafe { *weights.place().add(i) = number(i) });
        let softmax = |x: &mut Large, rows: usize| {
            let mut y = Large::new(rows * columns, skew);
            let shape = vec![rows, columns];
            run_at(SOFTMAX, &[("B", 1), ("W", columns)], &[(x.place(), shape.clone()), (y.place(), shape)]);
            y
        };
        let mut scaled = |x: &mut Large, rows: usize| {
            let mut y = Large::new(rows * columns, skew);
            let (shape, w) = (vec![rows, columns], (weights.place(), vec![1, columns]));
            run_at(SCALED, &[("W", columns)], &[(x.place(), shape.clone()), w, (y.place(), shape)]);
            y
        };
        let repeats = |large: &Large, small: &Large| {
            large.read().chunks(few * columns).all(|rows| *rows == small.read()[..rows.len()])
        };
        let (large, small) = (scaled(&mut x, rows), scaled(&mut x, few));
        assert!(repeats(&large, &small), "{skew} elements off");
        let (large, small) = (softmax(&mut x, rows), softmax(&mut x, few));
        assert!(repeats(&large, &small), "{skew} elements off");
        let total: f32 = small.read().iter().sum();
        assert!((total - few as f32).abs() < 1e-3, "rows add up to 1, but all to {total}");
    }
}

/// What isn't stored by rows, or waits for its turn, is stored by its own block.
#[test]
fn kernels_that_leave_nothing_agree_too() {
    let softmax = |b: usize| {
        agree(SOFTMAX, &[("B", b), ("W", 64)], &[(); 2].map(|()| sample(DType::F32, &[9, 64], 1)), 1e-5)
    };
    [1, 2, 4].into_iter().for_each(softmax);
}
