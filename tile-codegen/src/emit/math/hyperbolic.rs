//! Hyperbolic functions and their inverses. The small-argument tanh is Cephes' (tanhf.c, tanh.c); the inverses are logarithms of
//! what an argument is more than 1, as fdlibm's are (s_asinh.c, e_acosh.c, e_atanh.c).

use super::exponential::{exp, exp_shifted};
use super::{Precision, abs, clamp, ln_1p, polynomial};
use crate::emit::ir::Ir;
use inkwell::values::FloatValue;
use inkwell::{FloatPredicate, IntPredicate};
use std::f64::consts::LN_2;

/// `eˣ / 2` for `x >= 0`, which overflows only where `cosh x` does.
fn half_exp<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    exp_shifted(ir, p, clamp(ir, p, x, 0.0, if p.wide { 711.0 } else { 90.0 }), -1)
}

/// Hyperbolic sine: the Taylor series below 1, `h − 1/(4h)` with `h = e^|x| / 2` above.
pub(in crate::emit) fn sinh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = abs(ir, x);
    let half = half_exp(ir, &p, magnitude);
    let large = ir.fsub(half, ir.fdiv(p.float(0.25), half));
    let large = ir.float_intrinsic("llvm.copysign", &[large, x]);
    let next = |factorial: &mut f64, k: u32| {
        *factorial *= f64::from(2 * k * (2 * k + 1));
        Some(1.0 / *factorial)
    };
    let coefficients: Vec<f64> = (1..=if p.wide { 9 } else { 5 }).scan(1.0, next).collect();
    let z = ir.fmul(x, x);
    let small = ir.fadd(x, ir.fmul(ir.fmul(x, z), polynomial(ir, &p, z, &coefficients)));
    ir.select_float(ir.fcmp(FloatPredicate::OLT, magnitude, p.float(1.0)), small, large)
}

/// Hyperbolic cosine: `h + 1/(4h)` with `h = e^|x| / 2`.
pub(in crate::emit) fn cosh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let half = half_exp(ir, &p, abs(ir, x));
    ir.fadd(half, ir.fdiv(p.float(0.25), half))
}

const TANH_F32: [f64; 5] = [
    -3.333_328_194_22e-1,
    1.333_144_220_36e-1,
    -5.373_971_555_31e-2,
    2.063_908_879_54e-2,
    -5.704_988_727_45e-3,
];
const TANH_F64_NUMERATOR: [f64; 3] =
    [-1.614_687_684_417_084_5e3, -9.928_772_310_019_186e1, -9.643_991_794_250_522e-1];
const TANH_F64_DENOMINATOR: [f64; 4] =
    [4.844_063_053_251_255e3, 2.235_488_390_601_004_5e3, 1.128_116_784_916_329_3e2, 1.0];

/// Hyperbolic tangent: a polynomial below 0.625, `1 − 2/(e^(2|x|) + 1)` above.
pub(in crate::emit) fn tanh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = ir.float_intrinsic("llvm.fabs", &[x]);
    let z = ir.fmul(x, x);
    let ratio = if p.wide {
        let denominator = polynomial(ir, &p, z, &TANH_F64_DENOMINATOR);
        ir.fdiv(polynomial(ir, &p, z, &TANH_F64_NUMERATOR), denominator)
    } else {
        polynomial(ir, &p, z, &TANH_F32)
    };
    let small = ir.fadd(x, ir.fmul(ir.fmul(x, z), ratio));
    let exponential = exp(ir, ir.fadd(magnitude, magnitude));
    let complement = ir.fdiv(p.float(2.0), ir.fadd(exponential, p.float(1.0)));
    let large = ir.float_intrinsic("llvm.copysign", &[ir.fsub(p.float(1.0), complement), x]);
    let is_small = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(0.625));
    let result = ir.select_float(is_small, small, large);
    ir.select_float(ir.icmp(IntPredicate::EQ, ir.bits(z), p.int(ir, 0)), x, result)
}

/// `ln(1 + t)`; where `large` is too large to be squared, `t` would be twice that, and the result is `ln 2 + ln large`.
fn log_of_sum<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    t: FloatValue<'c>,
    large: FloatValue<'c>,
) -> FloatValue<'c> {
    // From here on 1 is nothing beside it.
    let bound = p.float(f64::powi(2.0, if p.wide { 60 } else { 30 }));
    let is_large = ir.fcmp(FloatPredicate::OGT, large, bound);
    let log = ln_1p(ir, ir.select_float(is_large, large, t));
    ir.fadd(log, ir.select_float(is_large, p.float(LN_2), p.float(0.0)))
}

/// Inverse hyperbolic sine: `ln(1 + (a + a²/(1 + √(1 + a²))))` of `a = |x|`.
pub(in crate::emit) fn asinh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let (magnitude, one) = (abs(ir, x), p.float(1.0));
    let square = ir.fmul(x, x);
    let root = ir.float_intrinsic("llvm.sqrt", &[ir.fadd(one, square)]);
    let t = ir.fadd(magnitude, ir.fdiv(square, ir.fadd(one, root)));
    ir.float_intrinsic("llvm.copysign", &[log_of_sum(ir, &p, t, magnitude), x])
}

/// Inverse hyperbolic cosine: `ln(1 + (t + √(t·(t + 2))))` of `t = x − 1`.
pub(in crate::emit) fn acosh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let t = ir.fsub(x, p.float(1.0));
    let root = ir.float_intrinsic("llvm.sqrt", &[ir.fmul(t, ir.fadd(t, p.float(2.0)))]);
    let result = log_of_sum(ir, &p, ir.fadd(t, root), x);
    ir.select_float(ir.fcmp(FloatPredicate::OLT, t, p.float(0.0)), p.float(f64::NAN), result)
}

/// Inverse hyperbolic tangent: `½·ln(1 + 2a/(1 − a))` of `a = |x|`. Beyond 1 the quotient is below −2.
pub(in crate::emit) fn atanh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = abs(ir, x);
    let quotient = ir.fdiv(ir.fadd(magnitude, magnitude), ir.fsub(p.float(1.0), magnitude));
    let half = ir.fmul(ln_1p(ir, quotient), p.float(0.5));
    ir.float_intrinsic("llvm.copysign", &[half, x])
}
