//! GPU code run thread by thread on the host, against the evaluator; every shared access is checked for races.

use crate::cases::{control, product, products_of_every_format};
use crate::kernels::{SOFTMAX, elementwise, movement, reduction};
use crate::support::{close, instance, run_simt, sample};
use tile_ir::ops::ReduceOp;
use tile_ir::{Array, DType, interp};

/// Runs a kernel with the usual number of threads, and with few, so that every thread has many slots.
fn agree(source: &str, constants: &[(&str, usize)], arguments: &[Array], tolerance: f64) {
    let instance = instance(source, constants);
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    for threads in [None, Some(32), Some(4)] {
        let actual = run_simt(&instance, arguments, threads);
        for (which, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            let what = format!("argument {which}, {threads:?} threads, {constants:?} of\n{source}");
            close(actual, expected, tolerance, &what);
        }
    }
}

#[test]
fn matmul_of_every_format() {
    products_of_every_format().for_each(|case| case.check(agree));
}

#[test]
fn matmul_of_ragged_and_degenerate_shapes() {
    for (shape, tiles) in [
        ((1, 1, 1), [16, 16, 16]),
        ((17, 65, 9), [5, 7, 3]),
        ((17, 65, 9), [48, 80, 10]),
        ((4, 4, 0), [1, 48, 8]),
        ((0, 4, 4), [4, 4, 4]),
        ((20, 12, 6), [13, 1, 5]),
        ((30, 300, 8), [2, 256, 4]),
    ] {
        product((DType::F32, DType::F32), shape, tiles, 0.0).check(agree);
    }
}

#[test]
fn softmax_with_rows_shorter_than_the_tile() {
    for (m, n, b, w) in [(7, 100, 4, 128), (3, 1, 2, 1), (1, 33, 1, 64), (5, 700, 2, 1024), (3, 41, 3, 48)] {
        let arguments = [sample(DType::F32, &[m, n], 5), sample(DType::F32, &[m, n], 6)];
        // Four roundings and an exponential of 2 ulp.
        agree(SOFTMAX, &[("B", b), ("W", w)], &arguments, 1e-6);
    }
}

#[test]
fn loops_branches_and_movement() {
    control().for_each(|case| case.check(agree));
}

#[test]
fn reductions_of_every_shape() {
    let shapes: [&[usize]; 10] = [
        &[3, 100],
        &[37, 5],
        &[4, 512],
        &[512, 4],
        &[1, 1000],
        &[1000, 1],
        &[6, 16, 8],
        &[2, 3, 256],
        &[5, 7, 3],
        &[300],
    ];
    for shape in shapes {
        for axis in 0..shape.len() {
            let mut result = shape.to_vec();
            result[axis] = 1;
            let arguments = [sample(DType::F32, shape, 4), sample(DType::F32, &result, 5)];
            agree(&reduction(DType::F32, ReduceOp::Sum, shape, axis), &[], &arguments, 1e-5);
        }
    }
}

#[test]
fn reductions_of_every_format() {
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_element()) {
        for &op in ReduceOp::ALL.iter().filter(|op| op.domain().accepts(dtype)) {
            for axis in [0, 1] {
                let shape = [9, 70];
                let mut result = shape;
                result[axis] = 1;
                let arguments = [sample(dtype, &shape, 4), sample(dtype, &result, 5)];
                agree(&reduction(dtype, op, &shape, axis), &[], &arguments, 1e-5);
            }
        }
    }
}

#[test]
fn broadcasts_and_permutations() {
    for (shape, tile) in
        [([40, 72], [16, 32]), ([40, 72], [5, 7]), ([9, 513], [3, 256]), ([300, 2], [256, 1])]
    {
        let arguments = [sample(DType::BF16, &shape, 1), sample(DType::BF16, &[shape[1], shape[0]], 2)];
        agree(&movement("bf16"), &[("A", tile[0]), ("B", tile[1])], &arguments, 0.0);
    }
}

#[test]
fn elementwise_ops_at_the_edge() {
    for (dtype, result, body) in [
        (DType::F16, DType::F16, "mul %a, %b"),
        (DType::BF16, DType::BF16, "div %a, %b"),
        (DType::I8, DType::I8, "rem %a, %b"),
        (DType::Bool, DType::Bool, "xor %a, %b"),
        (DType::F32, DType::Bool, "lt %a, %b"),
        (DType::F64, DType::F64, "rem %a, %b"),
        (DType::U64, DType::F16, "cast %a"),
    ] {
        for (n, b) in [(1, 1), (70, 64), (200, 300), (515, 512)] {
            let arguments = [sample(dtype, &[n], 1), sample(dtype, &[n], 2), sample(result, &[n], 3)];
            agree(&elementwise(dtype.name(), result.name(), body), &[("B", b)], &arguments, 0.0);
        }
    }
}

/// The stored tile is read back within the block, padding and all.
#[test]
fn a_block_reads_back_what_it_stored() {
    let source = "\
kernel @twice<B>(%y: mut tensor<n x i32>) {
  %v = partition %y [B] : mut partition<n x i32, [B]>
  %pad = constant 7 : i32
  %0 = constant 0 : index
  %3 = constant 3 : index
  for %k = %0 to %3 {
    %t = load_masked %v pad %pad : tile<B x i32>
    %d = add %t, %t : tile<B x i32>
    store_masked %v, %d
  }
}
";
    for (n, b) in [(10, 4), (300, 200), (5, 8)] {
        agree(source, &[("B", b)], &[sample(DType::I32, &[n], 1)], 0.0);
    }
}

#[test]
fn tiles_change_threads_where_their_layouts_differ() {
    for (dtype, m, n) in [
        (DType::F32, 64, 64),
        (DType::I8, 16, 128),
        (DType::F16, 32, 8),
        (DType::F64, 8, 64),
        (DType::BF16, 12, 40),
        (DType::F32, 5, 3),
    ] {
        let source = format!(
            "kernel @transposed(%x: tensor<{m} x {n} x {dtype}>, %y: mut tensor<{n} x {m} x {dtype}>) {{
  %vx = partition %x [{m}, {n}] : partition<{m} x {n} x {dtype}, [{m}, {n}]>
  %vy = partition %y [{n}, {m}] : mut partition<{n} x {m} x {dtype}, [{n}, {m}]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%j, %i] : tile<{m} x {n} x {dtype}>
  %r = permute %t [1, 0] : tile<{n} x {m} x {dtype}>
  %s = reshape %r : tile<{m} x {n} x {dtype}>
  %sum = add %s, %t : tile<{m} x {n} x {dtype}>
  %back = reshape %sum : tile<{n} x {m} x {dtype}>
  store %vy, %back
}}
"
        );
        agree(&source, &[], &[sample(dtype, &[m, n], 1), sample(dtype, &[n, m], 2)], 0.0);
    }
}

#[test]
fn aligned_rows_are_moved_in_vectors() {
    for (dtype, m, n) in [(DType::F32, 5, 96), (DType::BF16, 7, 80), (DType::I8, 3, 112), (DType::F64, 4, 48)]
    {
        let (name, shape) = (dtype.name(), [m, n]);
        let arguments = [sample(dtype, &shape, 1), sample(dtype, &shape, 2), sample(dtype, &shape, 3)];
        let source = format!(
            "kernel @sum(%a: tensor<m x n x {name}>, %b: tensor<m x n x {name}>, %c: mut tensor<m x n x {name}>) {{
  %va = partition %a [4, 64] : partition<m x n x {name}, [4, 64]>
  %vb = partition %b [4, 64] : partition<m x n x {name}, [4, 64]>
  %vc = partition %c [4, 64] : mut partition<m x n x {name}, [4, 64]>
  %i, %j = block_index %vc : index, index
  %pad = constant {} : {name}
  %ta = load_masked %va[%i, %j] pad %pad : tile<4 x 64 x {name}>
  %tb = load_masked %vb[%i, %j] pad %pad : tile<4 x 64 x {name}>
  %sum = add %ta, %tb : tile<4 x 64 x {name}>
  store_masked %vc, %sum
  %again = load_masked %vc pad %pad : tile<4 x 64 x {name}>
  %twice = add %again, %tb : tile<4 x 64 x {name}>
  store_masked %vc, %twice
}}
",
            if dtype.is_float() { "0.0" } else { "0" }
        );
        agree(&source, &[], &arguments, 0.0);
    }
    product((DType::BF16, DType::F32), (48, 80, 64), [32, 64, 32], 0.0).check(agree);
    product((DType::F16, DType::F16), (32, 48, 96), [16, 32, 32], 0.0).check(agree);
    product((DType::I8, DType::I32), (64, 96, 64), [32, 32, 64], 0.0).check(agree);
}

/// The result's threads hold more columns than there are; an axis in front moves none of them.
#[test]
fn a_product_gets_an_axis_in_front() {
    let source = "kernel @one_of_a_batch(%a: tensor<m x k x i32>, %b: tensor<k x n x i32>, %y: mut tensor<b x m x n x i32>) {
  %va = partition %a [16, 16] : partition<m x k x i32, [16, 16]>
  %vb = partition %b [16, 5] : partition<k x n x i32, [16, 5]>
  %vy = partition %y [1, 16, 5] : mut partition<b x m x n x i32, [1, 16, 5]>
  %i, %j, %h = block_index %vy : index, index, index
  %zero = constant 0 : i32
  %first = constant 0 : index
  %ta = load_masked %va[%j, %first] pad %zero : tile<16 x 16 x i32>
  %tb = load_masked %vb[%first, %h] pad %zero : tile<16 x 5 x i32>
  %sum = splat %zero : tile<16 x 5 x i32>
  %product = mma %ta, %tb, %sum : tile<16 x 5 x i32>
  %matrix = reshape %product : tile<1 x 16 x 5 x i32>
  store_masked %vy, %matrix
}
";
    let tensor = |shape: &[usize], seed| sample(DType::I32, shape, seed);
    agree(source, &[], &[tensor(&[20, 16], 1), tensor(&[16, 9], 2), tensor(&[2, 20, 9], 3)], 0.0);
}
