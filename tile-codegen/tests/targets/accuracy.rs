//! The error of every mathematical function in units of the last place, and its edges bit by bit.

use crate::kernels::elementwise;
use crate::support::{instance, run_native};
use tile_codegen::{CpuLevel, Options};
use tile_ir::array::{Elements, round_float};
use tile_ir::ops::{BinaryOp, Literal, UnaryOp};
use tile_ir::{Array, DType};

/// Functions and the bounds in ulp that the op table states, for f32 and f64. The f64 bound has one more,
/// because f64 is compared with the system's library, itself within 1 ulp.
pub(crate) const BOUNDS: &[(UnaryOp, f64, f64)] = &[
    (UnaryOp::Exp, 2.0, 3.0),
    (UnaryOp::Exp2, 2.0, 3.0),
    (UnaryOp::Log, 2.0, 3.0),
    (UnaryOp::Log2, 2.0, 3.0),
    (UnaryOp::Log10, 2.0, 3.0),
    (UnaryOp::Ln1p, 2.0, 3.0),
    (UnaryOp::Exp10, 2.0, 3.0),
    (UnaryOp::ExpM1, 2.0, 3.0),
    (UnaryOp::Rsqrt, 2.0, 3.0),
    (UnaryOp::Tanh, 4.0, 5.0),
    (UnaryOp::Sinh, 3.0, 4.0),
    (UnaryOp::Cosh, 3.0, 4.0),
    (UnaryOp::Cbrt, 2.0, 3.0),
    (UnaryOp::Erf, 2.0, 3.0),
    (UnaryOp::Sigmoid, 3.0, 4.0),
    (UnaryOp::Silu, 4.0, 5.0),
    (UnaryOp::Gelu, 5.0, 6.0),
    (UnaryOp::Sin, 2.0, 3.0),
    (UnaryOp::Cos, 2.0, 3.0),
    (UnaryOp::Tan, 3.0, 4.0),
    (UnaryOp::Asin, 3.0, 4.0),
    (UnaryOp::Acos, 3.0, 4.0),
    (UnaryOp::Atan, 3.0, 4.0),
];

/// The same for functions of two numbers.
pub(crate) const PAIR_BOUNDS: &[(BinaryOp, f64, f64)] =
    &[(BinaryOp::Powf, 2.0, 3.0), (BinaryOp::Atan2, 3.0, 4.0)];

/// Whether an op gives the exact or the correctly rounded result.
pub(crate) fn is_exact(op: UnaryOp) -> bool {
    BOUNDS.iter().all(|row| row.0 != op)
}

fn vector(dtype: DType, values: Vec<f64>) -> Array {
    Array::new(dtype, vec![values.len()], Elements::Float(values))
}

/// The results of an op on one or two operands, natively.
fn results(body: &str, a: &Array, b: &Array, cpu: CpuLevel) -> Vec<f64> {
    let dtype = a.dtype();
    let instance = instance(&elementwise(dtype.name(), dtype.name(), body), &[("B", 4096)]);
    let result = Array::full(dtype, &[a.len()], Literal::Int(0));
    let options = Options { cpu, ..Options::default() };
    let y = run_native(&instance, &[a.clone(), b.clone(), result], &options);
    (0..a.len()).map(|i| y[2].get_f64(i)).collect()
}

/// Distance in units of the last place of the format between a result and the exact value.
pub(crate) fn ulps(dtype: DType, actual: f64, exact: f64) -> f64 {
    let nearest = round_float(dtype, exact);
    if actual.is_nan() && exact.is_nan() || actual == exact {
        return 0.0;
    }
    if nearest.is_infinite() || actual.is_infinite() || actual.is_nan() || exact.is_nan() {
        return if nearest == actual { 0.0 } else { f64::INFINITY };
    }
    let (smallest, mantissa) = if dtype == DType::F64 { (-1022.0, 52) } else { (-126.0, 23) };
    let exponent = exact.abs().log2().floor().max(smallest);
    // In two steps: `powi` of an exponent below −1022 divides by infinity.
    (actual - exact).abs() / (f64::powi(2.0, exponent as i32) * f64::powi(2.0, -mantissa))
}

/// Prints the largest error of a function and asserts its bound.
fn report<Input: Copy + std::fmt::Debug>(
    what: &str,
    bound: f64,
    dtype: DType,
    cases: impl Iterator<Item = (f64, f64, Input)>,
) {
    let mut worst: (f64, Option<(f64, f64, Input)>) = (0.0, None);
    for (found, exact, input) in cases {
        let error = ulps(dtype, found, exact);
        if error > worst.0 {
            worst = (error, Some((found, exact, input)));
        }
    }
    println!("{what}: {:.3} ulp at {:?}", worst.0, worst.1);
    assert!(worst.0 <= bound, "{what} is off by {} ulp: (found, exact, input) = {:?}", worst.0, worst.1);
}

fn in_both_precisions(f32_inputs: &[f64], f64_inputs: &[f64]) {
    for (dtype, inputs) in [(DType::F32, f32_inputs), (DType::F64, f64_inputs)] {
        let x = vector(dtype, inputs.to_vec());
        for &(op, f32_bound, f64_bound) in BOUNDS {
            let bound = if dtype == DType::F32 { f32_bound } else { f64_bound };
            for cpu in [CpuLevel::Host, CpuLevel::V2] {
                let found = results(&format!("{} %a", op.name()), &x, &x, cpu);
                let cases = found.iter().zip(inputs).map(|(&found, &x)| (found, op.float()(x), x));
                report(&format!("{} of {dtype} on {}", op.name(), cpu.name()), bound, dtype, cases);
            }
        }
    }
}

/// Every 1009th bit pattern of f32: all exponents, NaN and infinities among them. Of f64 random bits, and
/// numbers where functions bend.
#[test]
fn functions_of_one_number_keep_their_bounds() {
    let f32_inputs: Vec<f64> = (0..=u32::MAX / 1009).map(|i| f64::from(f32::from_bits(i * 1009))).collect();
    let f64_inputs: Vec<f64> = (0..400_000u64)
        .map(|i| match i % 3 {
            0 => f64::from_bits(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            1 => (i as f64 - 200_000.0) / 300.0,
            _ => 1.0 + (i as f64 - 200_000.0) / 1e6,
        })
        .collect();
    in_both_precisions(&f32_inputs, &f64_inputs);
}

/// Random bit patterns; and pairs whose power is finite, with the base anywhere and near 1.
#[test]
fn functions_of_two_numbers_keep_their_bounds() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for dtype in [DType::F32, DType::F64] {
        let (largest, any) = if dtype == DType::F32 { (88.0, 8) } else { (709.0, 11) };
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        for i in 0..300_000 {
            let fraction = f64::from(random()) / f64::from(u32::MAX);
            let bits = (u64::from(random()) << 32) | u64::from(random());
            let wild = |bits: u64| match dtype {
                DType::F32 => f64::from(f32::from_bits((bits >> 32) as u32)),
                _ => f64::from_bits(bits),
            };
            let base = match i % 3 {
                0 => {
                    pairs.push((wild(bits), wild(bits.rotate_left(any))));
                    continue;
                }
                1 => wild(bits & !(1 << 63)),
                _ => 1.0 + (fraction - 0.5) * f64::powi(2.0, -(random() as i32 & 15)),
            };
            let base = round_float(dtype, base);
            let exponent = (2.0 * f64::from(random()) / f64::from(u32::MAX) - 1.0) * largest / base.ln();
            pairs.push((base, round_float(dtype, exponent)));
        }
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (a, b) = (vector(dtype, a), vector(dtype, b));
        for &(op, f32_bound, f64_bound) in PAIR_BOUNDS {
            let bound = if dtype == DType::F32 { f32_bound } else { f64_bound };
            for cpu in [CpuLevel::Host, CpuLevel::V2] {
                let found = results(&format!("{} %a, %b", op.name()), &a, &b, cpu);
                let cases =
                    found.iter().zip(&pairs).map(|(&found, &(a, b))| (found, op.float()(a, b), (a, b)));
                report(&format!("{} of {dtype} on {}", op.name(), cpu.name()), bound, dtype, cases);
            }
        }
    }
}

/// Zeros of both signs, subnormals, the largest numbers, infinities, NaN, and numbers at which functions are
/// exact. Rounded to a format.
fn edges(dtype: DType) -> Vec<f64> {
    let (tiny, normal, largest) = if dtype == DType::F32 {
        (f64::from(f32::from_bits(1)), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))
    } else {
        (f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX)
    };
    let half = [0.0, 0.5, 1.0, 2.0, 3.0, tiny, 5.0 * tiny, normal / 2.0, normal, largest, f64::INFINITY];
    half.into_iter().flat_map(|x| [x, -x]).chain([f64::NAN]).collect()
}

/// Zeros, infinities and NaN come out as the table says, with the sign; other numbers within the bound.
fn check_edge(what: &str, dtype: DType, found: f64, exact: f64, bound: f64) {
    let expected = round_float(dtype, exact);
    let special = expected == 0.0 && exact == 0.0 || !exact.is_finite();
    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    let near = ulps(dtype, found, exact) <= bound && found.is_sign_negative() == exact.is_sign_negative();
    assert!(same || !special && near, "{what} is {found:?}, not {expected:?}");
}

#[test]
fn functions_are_right_at_the_edges() {
    for dtype in [DType::F32, DType::F64] {
        let inputs = edges(dtype);
        let x = vector(dtype, inputs.clone());
        let pairs: Vec<(f64, f64)> =
            inputs.iter().flat_map(|&a| inputs.iter().map(move |&b| (a, b))).collect();
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (a, b) = (vector(dtype, a), vector(dtype, b));
        for cpu in [CpuLevel::Host, CpuLevel::V2] {
            for &(op, _, bound) in BOUNDS {
                let found = results(&format!("{} %a", op.name()), &x, &x, cpu);
                for (&found, &x) in found.iter().zip(&inputs) {
                    let what = format!("{}({x:?}) of {dtype} on {}", op.name(), cpu.name());
                    check_edge(&what, dtype, found, op.float()(x), bound);
                }
            }
            for &(op, _, bound) in PAIR_BOUNDS {
                let found = results(&format!("{} %a, %b", op.name()), &a, &b, cpu);
                for (&found, &(a, b)) in found.iter().zip(&pairs) {
                    let what = format!("{}({a:?}, {b:?}) of {dtype} on {}", op.name(), cpu.name());
                    check_edge(&what, dtype, found, op.float()(a, b), bound);
                }
            }
        }
    }
}
