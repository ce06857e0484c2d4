//! `mma` beyond one matrix of one format: batches, and factors of two formats. On both kinds of target.

use crate::support::{close, instance, run_native, run_simt, sample};
use tile_codegen::Options;
use tile_ir::{Array, DType, interp};

/// A product of stacks of matrices, one per block.
fn batched(left: DType, right: DType, sum: DType, [batch, m, n, k]: [usize; 4]) -> String {
    let zero = |dtype: DType| if dtype.is_float() { "0.0" } else { "0" };
    let (a, b, c) =
        (format!("{batch} x {m} x {k}"), format!("{batch} x {k} x {n}"), format!("{batch} x {m} x {n}"));
    format!(
        "kernel @batched(%a: tensor<s x {m} x {k} x {left}>, %b: tensor<s x {k} x {n} x {right}>, %c: mut tensor<s x {m} x {n} x {sum}>) {{
  %va = partition %a [{batch}, {m}, {k}] : partition<s x {m} x {k} x {left}, [{batch}, {m}, {k}]>
  %vb = partition %b [{batch}, {k}, {n}] : partition<s x {k} x {n} x {right}, [{batch}, {k}, {n}]>
  %vc = partition %c [{batch}, {m}, {n}] : mut partition<s x {m} x {n} x {sum}, [{batch}, {m}, {n}]>
  %i, %j, %l = block_index %vc : index, index, index
  %za = constant {za} : {left}
  %zb = constant {zb} : {right}
  %zc = constant {zc} : {sum}
  %ta = load_masked %va[%i, %j, %l] pad %za : tile<{a} x {left}>
  %tb = load_masked %vb[%i, %j, %l] pad %zb : tile<{b} x {right}>
  %tc = load_masked %vc pad %zc : tile<{c} x {sum}>
  %r = mma %ta, %tb, %tc : tile<{c} x {sum}>
  store_masked %vc, %r
}}
",
        za = zero(left),
        zb = zero(right),
        zc = zero(sum),
    )
}

pub(crate) fn check(left: DType, right: DType, sum: DType, shape: [usize; 4], tolerance: f64) {
    let [batch, m, n, k] = shape;
    let stacked = 2 * batch + 1;
    let source = batched(left, right, sum, shape);
    let instance = instance(&source, &[]);
    let arguments = [
        sample(left, &[stacked, m, k], 1),
        sample(right, &[stacked, k, n], 2),
        sample(sum, &[stacked, m, n], 3),
    ];
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    let by_hand = product(&arguments, [stacked, m, n, k]);
    for (i, &sum) in by_hand.iter().enumerate() {
        let found = expected[2].get_f64(i);
        assert!((found - sum).abs() <= tolerance * sum.abs().max(1.0), "element {i}: {found}, not {sum}");
    }
    let what = format!("{left} · {right} + {sum} of {shape:?}");
    close(&run_native(&instance, &arguments, &Options::default())[2], &expected[2], tolerance, &what);
    for threads in [None, Some(32)] {
        close(&run_simt(&instance, &arguments, threads)[2], &expected[2], tolerance, &what);
    }
}

fn product([a, b, c]: &[Array; 3], [batch, m, n, k]: [usize; 4]) -> Vec<f64> {
    let element = |i: usize| {
        let (s, row, column) = (i / (m * n), i / n % m, i % n);
        let products = (0..k).map(|p| a.get_f64((s * m + row) * k + p) * b.get_f64((s * k + p) * n + column));
        c.get_f64(i) + products.sum::<f64>()
    };
    (0..batch * m * n).map(element).collect()
}

#[test]
fn stacks_of_matrices() {
    for shape in [[1, 4, 4, 4], [3, 5, 7, 2], [4, 16, 16, 8], [2, 33, 20, 6]] {
        check(DType::F32, DType::F32, DType::F32, shape, 0.0);
        check(DType::BF16, DType::BF16, DType::F32, shape, 0.0);
        check(DType::I8, DType::I8, DType::I32, shape, 0.0);
    }
}

/// Its sums change threads before they are stored, and take more than the shared memory of AMD's blocks together.
#[test]
fn sums_that_change_threads_in_rounds() {
    check(DType::I8, DType::I8, DType::I32, [3, 64, 127, 1], 0.0);
}

/// Its factors fill the shared memory of AMD's blocks.
#[test]
fn factors_that_leave_little_shared_memory() {
    check(DType::I64, DType::I64, DType::I64, [3, 4, 127, 17], 0.0);
}

#[test]
fn factors_of_two_formats() {
    for shape in [[1, 8, 8, 16], [2, 5, 3, 7]] {
        check(DType::I8, DType::U8, DType::I32, shape, 0.0);
        check(DType::U8, DType::I8, DType::I32, shape, 0.0);
        check(DType::F8E4M3FN, DType::F8E5M2, DType::F32, shape, 1e-6);
        check(DType::F8E5M2, DType::F8E4M3FN, DType::F16, shape, 2e-3);
    }
}
