//! Elementwise ops that GPUs have instructions for: what they are in PTX, and their values on simulated threads, bit by
//! bit where ops are exact.

use crate::kernels::{elementwise, reduction};
use crate::support::{instance, run_simt};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::Elements;
use tile_ir::ops::{Literal, ReduceOp};
use tile_ir::{Array, DType, TargetDesc};

/// The PTX of an op on two tiles of one element per thread.
fn ptx(dtype: DType, result: DType, body: &str) -> String {
    text_of(&elementwise(dtype.name(), result.name(), body), &[("B", 128)])
}

fn text_of(source: &str, constants: &[(&str, usize)]) -> String {
    let instance = instance(source, constants);
    let artifact = compile(&instance, TargetDesc::named("sm_90a").unwrap(), &Options::default()).unwrap();
    let Code::Ptx(text) = artifact.code else { panic!("PTX for NVIDIA's GPUs") };
    text
}

fn count(text: &str, instruction: &str) -> usize {
    text.matches(&format!("\t{instruction} ")).count()
}

/// Whether floats are compared.
fn compares(text: &str) -> bool {
    text.lines().any(|line| line.contains("\tsetp.") && line.contains(".f32"))
}

/// The results of an op on simulated threads of NVIDIA's and AMD's GPUs.
fn results(dtype: DType, result: DType, body: &str, a: &[f64], b: &[f64]) -> [Array; 2] {
    let instance = instance(&elementwise(dtype.name(), result.name(), body), &[("B", 512)]);
    let operand = |values: &[f64]| Array::new(dtype, vec![values.len()], Elements::Float(values.to_vec()));
    let arguments = [operand(a), operand(b), Array::full(result, &[a.len()], Literal::Int(0))];
    [None, Some(64)].map(|threads| run_simt(&instance, &arguments, threads).pop().unwrap())
}

#[test]
fn the_larger_and_the_smaller_are_one_instruction() {
    for (op, instruction) in
        [("max", "max.f32"), ("min", "min.f32"), ("maximum", "max.NaN.f32"), ("minimum", "min.NaN.f32")]
    {
        for dtype in [DType::F32, DType::BF16] {
            let text = ptx(dtype, dtype, &format!("{op} %a, %b"));
            assert_eq!(count(&text, instruction), 1, "{op} of {dtype}:\n{text}");
            assert!(!compares(&text), "{op} of {dtype}:\n{text}");
        }
    }
    let source = reduction(DType::F32, ReduceOp::Max, &[4, 256], 1);
    let text = text_of(&source, &[]);
    assert!(count(&text, "max.f32") > 0 && !compares(&text), "{text}");
}

/// The smaller and the larger of a pair: where NaN is ignored, and where it isn't.
#[test]
fn the_larger_and_the_smaller_know_nan_and_signed_zeros() {
    let (nan, inf, tiny) = (f64::NAN, f64::INFINITY, 2f64.powi(-133));
    let rows = [
        (0.0, -0.0, [-0.0, 0.0], [-0.0, 0.0]),
        (-0.0, 0.0, [-0.0, 0.0], [-0.0, 0.0]),
        (-0.0, -0.0, [-0.0, -0.0], [-0.0, -0.0]),
        (0.0, 0.0, [0.0, 0.0], [0.0, 0.0]),
        (nan, 1.0, [1.0, 1.0], [nan, nan]),
        (-2.0, nan, [-2.0, -2.0], [nan, nan]),
        (nan, -0.0, [-0.0, -0.0], [nan, nan]),
        (nan, -inf, [-inf, -inf], [nan, nan]),
        (nan, nan, [nan, nan], [nan, nan]),
        (inf, -inf, [-inf, inf], [-inf, inf]),
        (tiny, -tiny, [-tiny, tiny], [-tiny, tiny]),
        (tiny, 0.0, [0.0, tiny], [0.0, tiny]),
        (-0.0, -tiny, [-tiny, -0.0], [-tiny, -0.0]),
        (1.5, -3.0, [-3.0, 1.5], [-3.0, 1.5]),
    ];
    let (a, b): (Vec<f64>, Vec<f64>) = rows.iter().map(|row| (row.0, row.1)).unzip();
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (op, ignores_nan, which) in
            [("min", true, 0), ("max", true, 1), ("minimum", false, 0), ("maximum", false, 1)]
        {
            for found in results(dtype, dtype, &format!("{op} %a, %b"), &a, &b) {
                for (i, row) in rows.iter().enumerate() {
                    let expected = if ignores_nan { row.2[which] } else { row.3[which] };
                    let found = found.get_f64(i);
                    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    assert!(same, "{op} of {dtype} {:?} is {found:?}, not {expected:?}", (row.0, row.1));
                }
            }
        }
    }
}
