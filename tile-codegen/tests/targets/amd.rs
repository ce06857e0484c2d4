//! Kernels on simulated threads of every AMD GPU, whose matrix instructions, waves and ways between lanes differ, against
//! the evaluator.

use crate::budgets;
use crate::kernels::{elementwise, matmul, reduction};
use crate::support::{close, instance, run_simt_as, sample};
use tile_ir::array::Elements;
use tile_ir::ops::{Literal, ReduceOp};
use tile_ir::{Array, DType, Instance, interp};

const TARGETS: [&str; 5] = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"];

/// Runs on every AMD GPU with the usual number of threads.
fn agree(instance: &Instance, arguments: &[Array], tolerance: f64) {
    let mut expected = arguments.to_vec();
    interp::run(instance, &mut expected).unwrap();
    for target in TARGETS {
        let found = run_simt_as(target, instance, arguments, None);
        for (which, (found, expected)) in found.iter().zip(&expected).enumerate() {
            close(found, expected, tolerance, &format!("argument {which} of {} on {target}", instance.name));
        }
    }
}

fn product(format: DType, sum: DType, [m, n, k]: [usize; 3]) -> [Array; 3] {
    [sample(format, &[m, k], 1), sample(format, &[k, n], 2), sample(sum, &[m, n], 3)]
}

/// Sums of small multiples of 1/64 are exact in any order.
#[test]
fn products_of_matrix_instructions() {
    for format in [DType::BF16, DType::F16, DType::F32] {
        for tile in [[64, 64, 32], [64, 128, 64], [16, 32, 32]] {
            let [bm, bn, bk] = tile;
            let kernel = budgets::instance("gemm", Some(format), &[("BM", bm), ("BN", bn), ("BK", bk)]);
            agree(&kernel, &product(format, DType::F32, [2 * bm, bn, 3 * bk]), 0.0);
        }
    }
    let kernel = instance(&matmul("i8", "i32"), &[("BM", 64), ("BN", 32), ("BK", 32)]);
    agree(&kernel, &product(DType::I8, DType::I32, [70, 41, 50]), 0.0);
    let kernel = instance(&matmul("bf16", "f32"), &[("BM", 32), ("BN", 64), ("BK", 32)]);
    agree(&kernel, &product(DType::BF16, DType::F32, [33, 70, 47]), 0.0);
}

#[test]
fn a_product_of_what_follows_a_product() {
    let inputs = [1, 2, 3, 4].map(|seed| sample(DType::BF16, &[1, 256, 128], seed));
    for constants in [[("BM", 64), ("BN", 32)], [("BM", 128), ("BN", 64)]] {
        agree(&budgets::instance("attention", None, &constants), &inputs, 1.0 / 64.0);
    }
}

/// f32 at which rounding to bf16 and to f16 is decided, with what comes of them.
const ROUNDINGS: [(f32, f64, f64); 9] = [
    (1.003_906_3, 1.0, 1.003_906_25),
    (1.011_718_8, 1.015_625, 1.011_718_75),
    (-1.003_906_4, -1.007_812_5, -1.003_906_25),
    (1.000_488_3, 1.0, 1.0),
    (65520.0, 65536.0, f64::INFINITY),
    (f32::MAX, f64::INFINITY, f64::INFINITY),
    (f32::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY),
    (f32::NAN, f64::NAN, f64::NAN),
    (5.960_464_5e-8, 5.960_464_477_539_063e-8, 5.960_464_477_539_063e-8),
];

#[test]
fn casts_round_to_nearest_even() {
    let inputs: Vec<f64> = ROUNDINGS.iter().cycle().take(512).map(|row| f64::from(row.0)).collect();
    let x = Array::new(DType::F32, vec![512], Elements::Float(inputs));
    for format in [DType::BF16, DType::F16] {
        let kernel = instance(&elementwise("f32", format.name(), "cast %a"), &[("B", 512)]);
        let arguments = [x.clone(), x.clone(), Array::full(format, &[512], Literal::Int(0))];
        for target in TARGETS {
            let found = run_simt_as(target, &kernel, &arguments, None).pop().unwrap();
            for (i, row) in ROUNDINGS.iter().cycle().take(512).enumerate() {
                let expected = if format == DType::BF16 { row.1 } else { row.2 };
                let found = found.get_f64(i);
                let same = found == expected || found.is_nan() && expected.is_nan();
                assert!(same, "{} to {format} is {found} on {target}, not {expected}", row.0);
            }
        }
    }
}

#[test]
fn reductions_between_lanes() {
    let formats = [
        (DType::F32, ReduceOp::Sum, 1e-5),
        (DType::F32, ReduceOp::Max, 0.0),
        (DType::BF16, ReduceOp::Min, 0.0),
        (DType::I64, ReduceOp::Sum, 0.0),
        (DType::I8, ReduceOp::Max, 0.0),
    ];
    for (dtype, op, tolerance) in formats {
        for (shape, axis) in [([4, 512], 1), ([512, 4], 0), ([2, 16], 1), ([16, 64], 0), ([64, 37], 1)] {
            let kernel = instance(&reduction(dtype, op, &shape, axis), &[]);
            let mut result = shape;
            result[axis] = 1;
            agree(&kernel, &[sample(dtype, &shape, 4), sample(dtype, &result, 5)], tolerance);
        }
    }
}

/// Grids of any extents: every block has a tile, and every tile a block.
#[test]
fn blocks_of_parts_have_all_tiles() {
    for (m, n) in [(1, 1), (3, 5), (7, 3), (9, 4), (20, 1), (1, 17)] {
        let kernel = budgets::instance("gemm", Some(DType::F16), &[("BM", 16), ("BN", 16), ("BK", 16)]);
        agree(&kernel, &product(DType::F16, DType::F32, [16 * m, 16 * n, 16]), 0.0);
    }
}

/// The largest elements along an axis, and the sums, of sums that lie as multiply-adds leave them.
#[test]
fn sums_of_multiply_adds_are_reduced_where_they_lie() {
    for (axis, reduction, [rows, columns]) in
        [(1, "max", [64, 1]), (0, "max", [1, 64]), (1, "sum", [64, 1]), (0, "sum", [1, 64])]
    {
        for (dtype, depth) in [(DType::F32, 1), (DType::F32, 32), (DType::F64, 32)] {
            let source = format!(
                "kernel @k(%a: tensor<64 x {depth} x {dtype}>, %b: tensor<{depth} x 64 x {dtype}>, %y: mut tensor<{rows} x {columns} x {dtype}>) {{
  %va = partition %a [64, {depth}] : partition<64 x {depth} x {dtype}, [64, {depth}]>
  %vb = partition %b [{depth}, 64] : partition<{depth} x 64 x {dtype}, [{depth}, 64]>
  %vy = partition %y [{rows}, {columns}] : mut partition<{rows} x {columns} x {dtype}, [{rows}, {columns}]>
  %i, %j = block_index %vy : index, index
  %ta = load %va[%i, %j] : tile<64 x {depth} x {dtype}>
  %tb = load %vb[%i, %j] : tile<{depth} x 64 x {dtype}>
  %z = constant 0.0 : {dtype}
  %zero = splat %z : tile<64 x 64 x {dtype}>
  %c = mma %ta, %tb, %zero : tile<64 x 64 x {dtype}>
  %s = reduce {reduction} %c axis {axis} : tile<{rows} x {columns} x {dtype}>
  store %vy, %s
}}
"
            );
            let shapes = [[64, depth], [depth, 64], [rows, columns]];
            let arguments: Vec<Array> =
                shapes.iter().zip(1..).map(|(shape, seed)| sample(dtype, shape, seed)).collect();
            agree(&instance(&source, &[]), &arguments, 0.0);
        }
    }
}
