//! Exponentials, logarithms and tanh from basic arithmetic, for f32 and f64, on every target.
//!
//! No function calls a library and none branches, so a loop around them vectorises. The error bounds are
//! those of the op table; the tests measure them. Argument reduction follows fdlibm (e_exp.c, e_log.c);
//! the small-argument tanh is Cephes' (tanhf.c, tanh.c).

use super::ir::{Ir, float_bits};
use inkwell::FloatPredicate;
use inkwell::IntPredicate;
use inkwell::types::FloatType;
use inkwell::values::{FloatValue, IntValue};
use std::f64::consts::LOG2_E;

/// What differs between f32 and f64.
struct Precision<'c> {
    ty: FloatType<'c>,
    wide: bool,
    mantissa_bits: i64,
    bias: i64,
    /// `ln 2` as a head with trailing zeros, so that its products with small integers are exact, and a tail.
    ln2_head: f64,
    ln2_tail: f64,
}

impl<'c> Precision<'c> {
    fn of(ir: &Ir<'c>, x: FloatValue<'c>) -> Self {
        if float_bits(x.get_type()) == 64 {
            Precision {
                ty: ir.f64(),
                wide: true,
                mantissa_bits: 52,
                bias: 1023,
                ln2_head: 6.931_471_803_691_238e-1,
                ln2_tail: 1.908_214_929_270_587_7e-10,
            }
        } else {
            Precision {
                ty: ir.f32(),
                wide: false,
                mantissa_bits: 23,
                bias: 127,
                ln2_head: 0.693_145_751_953_125,
                ln2_tail: 1.428_606_765_330_187e-6,
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

/// The nearest integer, as a float and as an integer. Adding `1.5·2^mantissa_bits` pushes the fraction out;
/// the low bits of the sum are the integer. For `|x|` far below that.
fn round<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> (FloatValue<'c>, IntValue<'c>) {
    let magic = 1.5 * f64::powi(2.0, p.mantissa_bits as i32);
    let shifted = ir.fadd(x, p.float(magic));
    let magic_bits = if p.wide { magic.to_bits() as i64 } else { i64::from((magic as f32).to_bits()) };
    (ir.fsub(shifted, p.float(magic)), ir.sub(ir.bits(shifted), p.int(ir, magic_bits)))
}

/// `2^n` for an exponent in the normal range.
fn power_of_two<'c>(ir: &Ir<'c>, p: &Precision<'c>, n: IntValue<'c>) -> FloatValue<'c> {
    let field = ir.add(n, p.int(ir, p.bias));
    ir.float_of_bits(ir.shl(field, p.int(ir, p.mantissa_bits)), p.ty)
}

/// `x` kept between bounds beyond which the result has long overflowed or vanished. NaN stays.
fn clamp<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>, low: f64, high: f64) -> FloatValue<'c> {
    let x = ir.select_float(ir.fcmp(FloatPredicate::OLT, x, p.float(low)), p.float(low), x);
    ir.select_float(ir.fcmp(FloatPredicate::OGT, x, p.float(high)), p.float(high), x)
}

/// `e^r · 2^n` for `|r| <= ln 2 / 2`: the Taylor series, whose remainder is below a tenth of an ulp, and a
/// scaling in two steps, so that neither factor leaves the normal range.
fn exp_reduced<'c>(ir: &Ir<'c>, p: &Precision<'c>, r: FloatValue<'c>, n: IntValue<'c>) -> FloatValue<'c> {
    let degree = if p.wide { 13 } else { 7 };
    let mut coefficients = vec![0.5];
    for k in 3..=degree {
        coefficients.push(coefficients.last().copied().unwrap_or(1.0) / f64::from(k));
    }
    let square = ir.fmul(r, r);
    let high = ir.fmul(square, polynomial(ir, p, r, &coefficients));
    let series = ir.fadd(p.float(1.0), ir.fadd(r, high));
    let half = ir.ashr(n, p.int(ir, 1));
    let scaled = ir.fmul(series, power_of_two(ir, p, half));
    ir.fmul(scaled, power_of_two(ir, p, ir.sub(n, half)))
}

/// `eˣ`.
pub(super) fn exp<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let x = if p.wide { clamp(ir, &p, x, -746.0, 710.0) } else { clamp(ir, &p, x, -105.0, 89.0) };
    let (whole, n) = round(ir, &p, ir.fmul(x, p.float(LOG2_E)));
    let r = ir.mul_add(whole, p.float(-p.ln2_head), x);
    let r = ir.mul_add(whole, p.float(-p.ln2_tail), r);
    exp_reduced(ir, &p, r, n)
}

/// `2ˣ`.
pub(super) fn exp2<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let x = if p.wide { clamp(ir, &p, x, -1076.0, 1024.0) } else { clamp(ir, &p, x, -151.0, 128.0) };
    let (whole, n) = round(ir, &p, x);
    let r = ir.fmul(ir.fsub(x, whole), p.float(std::f64::consts::LN_2));
    exp_reduced(ir, &p, r, n)
}

/// `x = (1 + f) · 2^k` with `1 + f` between √½ and √2.
struct Split<'c> {
    f: FloatValue<'c>,
    k: FloatValue<'c>,
}

fn split<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> Split<'c> {
    let smallest_normal = f64::powi(2.0, 1 - p.bias as i32);
    let tiny = ir.fcmp(FloatPredicate::OLT, x, p.float(smallest_normal));
    let scale = f64::powi(2.0, p.mantissa_bits as i32 + 2);
    let scaled = ir.select_float(tiny, ir.fmul(x, p.float(scale)), x);
    let correction = ir.select_int(tiny, p.int(ir, p.mantissa_bits + 2), p.int(ir, 0));
    // Subtracting √½'s bits makes the exponent field count from √½ instead of from 1.
    let root = std::f64::consts::FRAC_1_SQRT_2;
    let root_bits = if p.wide { root.to_bits() as i64 } else { i64::from((root as f32).to_bits()) };
    let bits = ir.bits(scaled);
    let exponent = ir.ashr(ir.sub(bits, p.int(ir, root_bits)), p.int(ir, p.mantissa_bits));
    let mantissa = ir.sub(bits, ir.shl(exponent, p.int(ir, p.mantissa_bits)));
    let f = ir.fsub(ir.float_of_bits(mantissa, p.ty), p.float(1.0));
    let k = ir.int_to_float(ir.sub(exponent, correction), true, p.ty);
    Split { f, k }
}

/// `f²/2` and what is to be added to `f − f²/2` for `ln(1 + f)`: fdlibm's form, in which the small terms are
/// summed before the large one.
fn log_terms<'c>(ir: &Ir<'c>, p: &Precision<'c>, f: FloatValue<'c>) -> (FloatValue<'c>, FloatValue<'c>) {
    let s = ir.fdiv(f, ir.fadd(p.float(2.0), f));
    let z = ir.fmul(s, s);
    let terms = if p.wide { 11 } else { 5 };
    let coefficients: Vec<f64> = (1..=terms).map(|k| 2.0 / f64::from(2 * k + 1)).collect();
    let series = ir.fmul(z, polynomial(ir, p, z, &coefficients));
    let half_square = ir.fmul(p.float(0.5), ir.fmul(f, f));
    (half_square, ir.fmul(s, ir.fadd(half_square, series)))
}

/// The value at and beyond the edges of a logarithm's domain.
fn log_edges<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    x: FloatValue<'c>,
    inside: FloatValue<'c>,
) -> FloatValue<'c> {
    let infinite = ir.fcmp(FloatPredicate::OEQ, x, p.float(f64::INFINITY));
    let zero = ir.fcmp(FloatPredicate::OEQ, x, p.float(0.0));
    // Unordered: also for NaN.
    let negative = ir.fcmp(FloatPredicate::ULT, x, p.float(0.0));
    let result = ir.select_float(infinite, x, inside);
    let result = ir.select_float(zero, p.float(f64::NEG_INFINITY), result);
    ir.select_float(negative, p.float(f64::NAN), result)
}

/// `ln x`.
pub(super) fn log<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Split { f, k } = split(ir, &p, x);
    let (half_square, tail) = log_terms(ir, &p, f);
    let tail = ir.fadd(tail, ir.fmul(k, p.float(p.ln2_tail)));
    let small = ir.fsub(f, ir.fsub(half_square, tail));
    let result = ir.fadd(ir.fmul(k, p.float(p.ln2_head)), small);
    log_edges(ir, &p, x, result)
}

/// `log₂ x`: `k + ln(1 + f)·log₂ e`, where the product is split so that it loses less than half an ulp.
pub(super) fn log2<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Split { f, k } = split(ir, &p, x);
    let (half_square, tail) = log_terms(ir, &p, f);
    // The head of ln(1 + f) is cut to half the mantissa: its product with the head of log₂ e is exact.
    let cut = |value: FloatValue<'c>| {
        let mask = -(1i64 << (if p.wide { 32 } else { 12 }));
        ir.float_of_bits(ir.and(ir.bits(value), p.int(ir, mask)), p.ty)
    };
    let head = cut(ir.fsub(f, half_square));
    let rest = ir.fadd(ir.fsub(ir.fsub(f, head), half_square), tail);
    let scale_head = if p.wide {
        f64::from_bits(LOG2_E.to_bits() & !0xffff_ffff)
    } else {
        f64::from(f32::from_bits((LOG2_E as f32).to_bits() & !0xfff))
    };
    let scale_tail = LOG2_E - scale_head;
    let low = ir.fadd(ir.fmul(ir.fadd(rest, head), p.float(scale_tail)), ir.fmul(rest, p.float(scale_head)));
    let high = ir.fmul(head, p.float(scale_head));
    // k is an integer at least as large as `high`, or zero: the two-term sum loses nothing.
    let sum = ir.fadd(k, high);
    let lost = ir.fadd(ir.fsub(k, sum), high);
    let result = ir.fadd(sum, ir.fadd(low, lost));
    log_edges(ir, &p, x, result)
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
pub(super) fn tanh<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
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
