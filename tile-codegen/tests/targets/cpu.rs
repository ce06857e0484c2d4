//! Native code of whole kernels against the evaluator.

use crate::cases::{control, product, products_of_every_format};
use crate::kernels::{SOFTMAX, elementwise, matmul, softmax_of_other_letters};
use crate::support::{agree, embedded_levels, instance, run_native, sample};
use tile_codegen::Options;
use tile_ir::array::Elements;
use tile_ir::{Array, DType};

#[test]
fn matmul_of_every_format() {
    products_of_every_format().for_each(|case| case.check(agree));
}

#[test]
fn matmul_of_ragged_and_degenerate_shapes() {
    for shape in [(1, 1, 1), (5, 3, 2), (17, 65, 9), (0, 4, 4), (4, 4, 0), (64, 64, 64)] {
        for tiles in [[16, 16, 16], [5, 7, 3], [1, 48, 8], [13, 1, 5]] {
            product((DType::F32, DType::F32), shape, tiles, 0.0).check(agree);
        }
    }
}

#[test]
fn softmax_with_rows_shorter_than_the_tile() {
    for (m, n, b, w) in [(7, 100, 4, 128), (3, 1, 2, 1), (1, 33, 1, 64), (9, 257, 8, 512)] {
        // Four roundings and an exponential of 2 ulp.
        agree(
            SOFTMAX,
            &[("B", b), ("W", w)],
            &[sample(DType::F32, &[m, n], 5), sample(DType::F32, &[m, n], 6)],
            1e-6,
        );
    }
}

#[test]
fn names_of_other_letters() {
    let arguments = [sample(DType::F32, &[7, 100], 5), sample(DType::F32, &[7, 100], 6)];
    agree(&softmax_of_other_letters(), &[("BLÖCKE", 4), ("W", 128)], &arguments, 1e-6);
}

#[test]
fn loops_branches_and_movement() {
    control().for_each(|case| case.check(agree));
}

#[test]
fn reductions_of_every_format_axis_and_width() {
    for dtype in ["f32", "f64", "bf16", "i32", "u8", "i64"] {
        for op in ["sum", "max", "min"] {
            for (axis, rows, columns) in [(1, 3, 100), (0, 37, 5), (1, 4, 7), (1, 2, 64)] {
                let (r, c) = if axis == 1 { (rows, 1) } else { (1, columns) };
                let source = format!(
                    "kernel @reduce(%x: tensor<{rows} x {columns} x {dtype}>, %y: mut tensor<{r} x {c} x {dtype}>) {{
  %vx = partition %x [{rows}, {columns}] : partition<{rows} x {columns} x {dtype}, [{rows}, {columns}]>
  %vy = partition %y [{r}, {c}] : mut partition<{r} x {c} x {dtype}, [{r}, {c}]>
  %i, %j = block_index %vy : index, index
  %pad = constant {} : {dtype}
  %a = load_masked %vx[%i, %j] pad %pad : tile<{rows} x {columns} x {dtype}>
  %s = reduce {op} %a axis {axis} : tile<{r} x {c} x {dtype}>
  store_masked %vy, %s
}}
",
                    if dtype.contains('f') { "0.0" } else { "0" }
                );
                let dtype = DType::from_name(dtype).unwrap();
                // Sums of so few eighths are exact in f32, which is what narrower floats are summed in.
                agree(&source, &[], &[sample(dtype, &[rows, columns], 4), sample(dtype, &[r, c], 5)], 0.0);
            }
        }
    }
}

#[test]
fn max_ignores_nan_elements() {
    let source = elementwise("f32", "f32", "max %a, %b");
    let values = |v: [f64; 4]| Array::new(DType::F32, vec![4], Elements::Float(v.to_vec()));
    let nan = f64::NAN;
    let arguments = [values([nan, 1.0, nan, -0.0]), values([2.0, nan, nan, 0.0]), values([0.0; 4])];
    let result = run_native(&instance(&source, &[("B", 4)]), &arguments, &Options::default());
    assert_eq!((result[2].get_f64(0), result[2].get_f64(1)), (2.0, 1.0));
    assert!(result[2].get_f64(2).is_nan());
    assert!(result[2].get_f64(3).is_sign_positive());
}

#[test]
fn every_embedded_level_up_to_this_machines_gives_the_same_bits() {
    let source = matmul("f16", "f32");
    let instance = instance(&source, &[("BM", 8), ("BN", 24), ("BK", 8)]);
    let arguments =
        [sample(DType::F16, &[9, 10], 1), sample(DType::F16, &[10, 30], 2), sample(DType::F32, &[9, 30], 3)];
    let host = run_native(&instance, &arguments, &Options::default());
    for level in embedded_levels() {
        let options = Options { cpu: level, ..Options::default() };
        assert_eq!(run_native(&instance, &arguments, &options), host, "{}", level.name());
    }
}
