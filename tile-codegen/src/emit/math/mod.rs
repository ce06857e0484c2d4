//! Mathematical functions from basic arithmetic, for f32 and f64, on every target.
//!
//! No function calls a library and none branches, so a loop around them vectorises. The error bounds are
//! those of the op table; the tests measure them. A file is a family; here is what the families share: the
//! two precisions, polynomials, and arithmetic with twice the precision.
//!
//! Series that converge fast enough are Taylor's. Other polynomials are minimax in the relative error, found
//! by Remez' exchange in 50 digits; the comment at the coefficients says function, interval and error.

mod activation;
mod exponent;
mod exponential;
mod gelu;
mod hyperbolic;
mod inverse;
mod logarithm;
mod power;
mod reduction;
mod tabled;
mod trigonometry;

pub(super) use activation::{erf, erfc, sigmoid, silu};
pub(super) use exponential::{exp, exp_m1, exp2, exp10};
pub(super) use gelu::gelu;
pub(super) use hyperbolic::{acosh, asinh, atanh, cosh, sinh, tanh};
pub(super) use inverse::{acos, asin, atan, atan2};
pub(super) use logarithm::{ln_1p, log, log2, log10};
pub(super) use power::{cbrt, hypot, powf};
pub(super) use trigonometry::{cos, sin, tan};

use super::ir::{Approximations, Ir, float_bits};
use inkwell::FloatPredicate;
use inkwell::types::FloatType;
use inkwell::values::{FloatValue, IntValue};
use std::f64::consts::{FRAC_PI_2, LN_2, LOG10_2};

/// What differs between f32 and f64.
struct Precision<'c> {
    ty: FloatType<'c>,
    wide: bool,
    mantissa_bits: i64,
    bias: i64,
    /// `ln 2`, whose head's products with small integers are exact.
    ln2: Cut,
}

impl<'c> Precision<'c> {
    fn of(ir: &Ir<'c>, x: FloatValue<'c>) -> Self {
        if float_bits(x.get_type()) == 64 {
            Precision {
                ty: ir.f64(),
                wide: true,
                mantissa_bits: 52,
                bias: 1023,
                ln2: Cut { head: 6.931_471_803_691_238e-1, tail: 1.908_214_929_270_587_7e-10 },
            }
        } else {
            Precision {
                ty: ir.f32(),
                wide: false,
                mantissa_bits: 23,
                bias: 127,
                ln2: Cut { head: 0.693_145_751_953_125, tail: 1.428_606_765_330_187e-6 },
            }
        }
    }

    fn float(&self, value: f64) -> FloatValue<'c> {
        self.ty.const_float(value)
    }

    fn int(&self, ir: &Ir<'c>, value: i64) -> IntValue<'c> {
        ir.int_type(float_bits(self.ty)).const_int(value as u64, true)
    }
}

/// `c₀ + x·(c₁ + x·(c₂ + …))`.
fn polynomial<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>, coefficients: &[f64]) -> FloatValue<'c> {
    let (last, rest) = coefficients.split_last().expect("a polynomial has coefficients");
    rest.iter().rev().fold(p.float(*last), |sum, &c| ir.mul_add(sum, x, p.float(c)))
}

/// `x` kept between bounds beyond which the result has long overflowed or vanished. NaN stays.
fn clamp<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>, low: f64, high: f64) -> FloatValue<'c> {
    let x = ir.select_float(ir.fcmp(FloatPredicate::OLT, x, p.float(low)), p.float(low), x);
    ir.select_float(ir.fcmp(FloatPredicate::OGT, x, p.float(high)), p.float(high), x)
}

fn abs<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    ir.float_intrinsic("llvm.fabs", &[x])
}

/// `|x|`, but at most the bound. Of NaN it is the bound.
fn bounded_magnitude<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>, bound: f64) -> FloatValue<'c> {
    let (magnitude, bound) = (abs(ir, x), p.float(bound));
    if ir.features.extrema {
        return ir.float_intrinsic("llvm.minimumnum", &[magnitude, bound]);
    }
    ir.select_float(ir.fcmp(FloatPredicate::OLT, magnitude, bound), magnitude, bound)
}

/// The instructions of f32 that are right but for the last place, where there are some and the precision is f32.
fn approximations(ir: &Ir<'_>, p: &Precision<'_>) -> Option<Approximations> {
    if p.wide { None } else { ir.features.approximations }
}

/// `1/x` of normal numbers, within 1 ulp.
fn reciprocal<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    match approximations(ir, p) {
        Some(with) => ir.f32_instruction(with.reciprocal, &[x]),
        None => ir.fdiv(p.float(1.0), x),
    }
}

/// `1/√x`.
pub(super) fn rsqrt<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    match approximations(ir, &p).and_then(|with| with.rsqrt) {
        Some(name) => ir.f32_instruction(name, &[x]),
        None => ir.fdiv(p.float(1.0), ir.float_intrinsic("llvm.sqrt", &[x])),
    }
}

/// `a/b` of numbers far from those that overflow or vanish, within hardly more than half an ulp. A division has cases for
/// these, which GPUs branch for; here the error of the reciprocal is what the remainder says of it.
fn quotient<'c>(ir: &Ir<'c>, p: &Precision<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
    if approximations(ir, p).is_none() {
        return ir.fdiv(a, b);
    }
    let inverse = reciprocal(ir, p, b);
    let estimate = ir.fmul(a, inverse);
    let remainder = ir.mul_add(ir.fneg(estimate), b, a);
    ir.mul_add(remainder, inverse, estimate)
}

/// `x` itself where it is so small that `f(x) = x` to half an ulp; keeps −0 and every bit of subnormals.
fn identity_near_zero<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    x: FloatValue<'c>,
    result: FloatValue<'c>,
) -> FloatValue<'c> {
    let bound = p.float(f64::powi(2.0, -(p.mantissa_bits as i32) - 3));
    ir.select_float(ir.fcmp(FloatPredicate::OLT, abs(ir, x), bound), x, result)
}

/// A number as the unevaluated sum of two, the second below half an ulp of the first.
#[derive(Clone, Copy)]
struct Double<'c> {
    head: FloatValue<'c>,
    tail: FloatValue<'c>,
}

/// A number, with what it lacks where that is known.
#[derive(Clone, Copy)]
struct Extended<'c> {
    head: FloatValue<'c>,
    tail: Option<FloatValue<'c>>,
}

impl<'c> From<FloatValue<'c>> for Extended<'c> {
    fn from(head: FloatValue<'c>) -> Self {
        Extended { head, tail: None }
    }
}

impl<'c> From<Double<'c>> for Extended<'c> {
    fn from(Double { head, tail }: Double<'c>) -> Self {
        Extended { head, tail: Some(tail) }
    }
}

/// A constant of more digits than an f64 has: the nearest f64, and what that lacks.
#[derive(Clone, Copy)]
struct Constant {
    nearest: f64,
    rest: f64,
}

/// A constant whose head has trailing zeros, so that some of its products are exact, and what that lacks.
#[derive(Clone, Copy)]
struct Cut {
    head: f64,
    tail: f64,
}

/// `π/2`.
const RIGHT_ANGLE: Constant = Constant { nearest: FRAC_PI_2, rest: 6.123_233_995_736_766e-17 };

/// `log₁₀ 2`.
const LOG10_OF_2: Constant = Constant { nearest: LOG10_2, rest: -2.803_728_127_785_170_3e-18 };

impl Constant {
    /// One that is as good as the f64.
    const fn of(nearest: f64) -> Constant {
        Constant { nearest, rest: 0.0 }
    }

    /// The sum of two numbers of this precision.
    fn double<'c>(self, p: &Precision<'c>) -> Double<'c> {
        let head = if p.wide { self.nearest } else { f64::from(self.nearest as f32) };
        Double { head: p.float(head), tail: p.float(self.nearest - head + self.rest) }
    }

    /// With a head of half the mantissa.
    fn cut(self, p: &Precision<'_>) -> Cut {
        let value = self.nearest;
        let head = if p.wide {
            f64::from_bits(value.to_bits() & half_mask(p) as u64)
        } else {
            f64::from(f32::from_bits((value as f32).to_bits() & half_mask(p) as u32))
        };
        Cut { head, tail: value - head + self.rest }
    }
}

/// `a + b` exactly, for `|a| >= |b|` or `a = 0`.
fn fast_two_sum<'c>(ir: &Ir<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> Double<'c> {
    let head = ir.fadd(a, b);
    Double { head, tail: ir.fsub(b, ir.fsub(head, a)) }
}

/// The mask that keeps half of the mantissa.
fn half_mask(p: &Precision<'_>) -> i64 {
    -(1i64 << if p.wide { 27 } else { 12 })
}

/// `x` cut to half the mantissa: products of two such numbers are exact.
fn cut<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    ir.float_of_bits(ir.and(ir.bits(x), p.int(ir, half_mask(p))), p.ty)
}

/// `x − n·c`, where the products of n with the head of c are exact.
fn less_multiple<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    x: FloatValue<'c>,
    n: FloatValue<'c>,
    c: Cut,
) -> FloatValue<'c> {
    let r = ir.mul_add(n, p.float(-c.head), x);
    ir.mul_add(n, p.float(-c.tail), r)
}

/// `m² + n·2·ln 2`, rounded once: `e^(−m²/2)` is `2^n` times the power of minus a half of it. An error of the square would be
/// multiplied by itself.
fn remainder_of_square<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    m: FloatValue<'c>,
    n: FloatValue<'c>,
) -> FloatValue<'c> {
    // So few bits that the product with n is exact.
    let Cut { head, tail } = Constant::of(2.0 * LN_2).cut(p);
    let r = ir.mul_add(m, m, ir.fmul(n, p.float(head)));
    ir.mul_add(n, p.float(tail), r)
}

/// `a · b` exactly, by a fused multiply-add; without one from halves of the factors (Dekker 1971), of which those of f64 may
/// have a bit too many, so that `2^-106` of the product is lost.
fn two_product<'c>(ir: &Ir<'c>, p: &Precision<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> Double<'c> {
    let head = ir.fmul(a, b);
    if ir.features.fma {
        return Double { head, tail: ir.float_intrinsic("llvm.fma", &[a, b, ir.fneg(head)]) };
    }
    let (a_head, b_head) = (cut(ir, p, a), cut(ir, p, b));
    let (a_tail, b_tail) = (ir.fsub(a, a_head), ir.fsub(b, b_head));
    let sum = ir.fsub(ir.fmul(a_head, b_head), head);
    let sum = ir.fadd(sum, ir.fmul(a_head, b_tail));
    let sum = ir.fadd(sum, ir.fmul(a_tail, b_head));
    Double { head, tail: ir.fadd(sum, ir.fmul(a_tail, b_tail)) }
}
