//! Exponentials: `2^n` times the series of a remainder. The argument reduction is fdlibm's (e_exp.c).

use super::exponent::Exponent;
use super::{
    Double, Extended, LOG10_OF_2, Precision, approximations, clamp, fast_two_sum, identity_near_zero,
    less_multiple, polynomial, tabled,
};
use crate::emit::ir::{Approximations, Ir};
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;
use std::f64::consts::{LN_2, LN_10, LOG2_10, LOG2_E};

/// `1/least!, …, 1/degree!`.
fn taylor(least: usize, degree: u32) -> Vec<f64> {
    let next = |factorial: &mut f64, k: u32| {
        *factorial *= f64::from(k.max(1));
        Some(1.0 / *factorial)
    };
    (0..=degree).scan(1.0, next).skip(least).collect()
}

/// `e^r` for `|r| <= ln 2 / 2`: the polynomial that begins so with the least error, 3.2e-9.
pub(super) const SERIES_F32: [f64; 7] = [
    1.0,
    1.0,
    4.999_999_336_433e-1,
    1.666_651_929_234e-1,
    4.166_840_213_917e-2,
    8.368_878_951_598e-3,
    1.381_435_312_31e-3,
];

/// `e^r · 2^n` for `|r| <= ln 2 / 2`: a series whose error is below a tenth of an ulp.
fn exp_reduced<'c>(ir: &Ir<'c>, p: &Precision<'c>, r: FloatValue<'c>, n: Exponent<'c>) -> FloatValue<'c> {
    let series = if p.wide { taylor(0, 13) } else { SERIES_F32.to_vec() };
    n.scale(ir, p, polynomial(ir, p, r, &series))
}

/// `x = n·ln 2 + r` with `|r| <= ln 2 / 2`.
fn reduce<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> (FloatValue<'c>, Exponent<'c>) {
    let n = Exponent::of_product(ir, p, x, p.float(LOG2_E));
    (less_multiple(ir, p, x, n.number, p.ln2), n)
}

/// [`reduce`] with `r` to twice the precision.
fn reduce_to_double<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> (Double<'c>, Exponent<'c>) {
    let n = Exponent::of_product(ir, p, x, p.float(LOG2_E));
    let head = ir.mul_add(n.number, p.float(-p.ln2.head), x);
    (fast_two_sum(ir, head, ir.fmul(n.number, p.float(-p.ln2.tail))), n)
}

/// `eˣ`.
pub(in crate::emit) fn exp<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    if let Some(with) = approximations(ir, &p) {
        return exp_by_instruction(ir, &p, with, x.into(), 0);
    }
    if tabled::has_tables(ir, &p) {
        return tabled::exp(ir, &p, x);
    }
    let x = if p.wide { clamp(ir, &p, x, -746.0, 710.0) } else { clamp(ir, &p, x, -105.0, 89.0) };
    let (r, n) = reduce(ir, &p, x);
    exp_reduced(ir, &p, r, n)
}

/// `eˣ` for functions that add errors of their own: where [`exp`] uses a table, with a smaller error.
pub(super) fn precise_exp<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    if tabled::has_tables(ir, p) { tabled::precise_exp(ir, p, x, 0) } else { exp(ir, x) }
}

/// The exponents of 2 that are normal numbers of f32.
const LEAST_EXPONENT: f64 = -126.0;
const EXPONENTS: f64 = 253.0;

/// `e^(head + tail) · 2^shift` by the instruction for `2^r`, where `x·log₂e = n + r` with `|r| <= ½`: the result is `2^r`
/// times `2^(n + shift)`.
///
/// `n + shift` is kept to the exponents of normal numbers by rounding it as a fraction of their range, and beyond them
/// `r` grows instead: the product then overflows, or is subnormal and rounded once. Of ±∞ and NaN `r` is the same.
fn exp_by_instruction<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    with: Approximations,
    Extended { head, tail }: Extended<'c>,
    shift: i64,
) -> FloatValue<'c> {
    let least = LEAST_EXPONENT - shift as f64;
    let fraction = p.float(LOG2_E / EXPONENTS);
    let position = saturated_mul_add(ir, p, with, [head, fraction, p.float(-least / EXPONENTS)]);
    // The sum's last bits are the exponent field of `2^(n + shift)`, which is 1 for the least.
    let first = 1.5 * f64::powi(2.0, p.mantissa_bits as i32) + 1.0;
    let field = ir.mul_add(position, p.float(EXPONENTS), p.float(first));
    let n = ir.fsub(field, p.float(first - least));
    let (log2_e, rest) = (p.float(LOG2_E), p.float(LOG2_E - f64::from(LOG2_E as f32)));
    let r = ir.mul_add(head, log2_e, ir.fneg(n));
    let r = ir.mul_add(head, rest, r);
    let r = tail.map_or(r, |tail| ir.mul_add(tail, log2_e, r));
    let scale = ir.float_of_bits(ir.shl(ir.bits(field), p.int(ir, p.mantissa_bits)), p.ty);
    ir.fmul(ir.f32_instruction(with.exp2, &[r]), scale)
}

/// `a·b + c`, kept from 0 to 1.
fn saturated_mul_add<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    with: Approximations,
    [a, b, c]: [FloatValue<'c>; 3],
) -> FloatValue<'c> {
    if let Some(name) = with.saturated_mul_add {
        return ir.f32_instruction(name, &[a, b, c]);
    }
    let positive = ir.float_intrinsic("llvm.maximumnum", &[ir.mul_add(a, b, c), p.float(0.0)]);
    ir.float_intrinsic("llvm.minimumnum", &[positive, p.float(1.0)])
}

/// `eˣ · 2^shift`, for `x` that is clamped to where the result is normal or overflows by little.
pub(super) fn exp_shifted<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    x: FloatValue<'c>,
    shift: i64,
) -> FloatValue<'c> {
    if let Some(with) = approximations(ir, p) {
        return exp_by_instruction(ir, p, with, x.into(), shift);
    }
    if tabled::has_tables(ir, p) {
        return tabled::precise_exp(ir, p, x, shift);
    }
    let (r, n) = reduce(ir, p, x);
    exp_reduced(ir, p, r, n.shifted(ir, p, shift))
}

/// `e^(head + tail)` of numbers that [`exp`] doesn't clamp, with an error of an ulp or two.
pub(super) fn exp_without_overflow<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: Double<'c>) -> FloatValue<'c> {
    if let Some(with) = approximations(ir, p) {
        return exp_by_instruction(ir, p, with, x.into(), 0);
    }
    let (r, n) = reduce(ir, p, x.head);
    exp_reduced(ir, p, ir.fadd(r, x.tail), n)
}

/// `e^(head + tail)`.
pub(super) fn exp_of_double<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: Double<'c>) -> FloatValue<'c> {
    let (low, high) = if p.wide { (-746.0, 710.0) } else { (-105.0, 89.0) };
    let head = clamp(ir, p, x.head, low, high);
    // Beyond the bounds the tail may be large, and means nothing.
    let inside = ir.fcmp(FloatPredicate::OEQ, head, x.head);
    let tail = ir.select_float(inside, x.tail, p.float(0.0));
    let (r, n) = reduce_to_double(ir, p, head);
    exp_reduced(ir, p, ir.fadd(r.head, ir.fadd(r.tail, tail)), n)
}

/// `2ˣ`.
pub(in crate::emit) fn exp2<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    if let Some(with) = approximations(ir, &p) {
        return ir.f32_instruction(with.exp2, &[x]);
    }
    if tabled::has_tables(ir, &p) {
        return tabled::exp2(ir, &p, x);
    }
    let x = if p.wide { clamp(ir, &p, x, -1076.0, 1024.0) } else { clamp(ir, &p, x, -151.0, 128.0) };
    let n = Exponent::of(ir, &p, x);
    let r = ir.fmul(ir.fsub(x, n.number), p.float(LN_2));
    exp_reduced(ir, &p, r, n)
}

/// `10ˣ`: `x = n·log₁₀ 2 + r`, then `e^(r·ln 10) · 2^n`.
pub(in crate::emit) fn exp10<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    if tabled::has_tables(ir, &p) {
        return tabled::exp10(ir, &p, x);
    }
    let x = if p.wide { clamp(ir, &p, x, -325.0, 310.0) } else { clamp(ir, &p, x, -46.0, 39.0) };
    let n = Exponent::of(ir, &p, ir.fmul(x, p.float(LOG2_10)));
    let r = less_multiple(ir, &p, x, n.number, LOG10_OF_2.cut(&p));
    exp_reduced(ir, &p, ir.fmul(r, p.float(LN_10)), n)
}

/// `eˣ − 1` as `(e^r − 1)·2^n + (2^n − 1)`, halved until the end, so that it overflows only where it must.
pub(in crate::emit) fn exp_m1<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let clamped = if p.wide { clamp(ir, &p, x, -40.0, 710.0) } else { clamp(ir, &p, x, -20.0, 89.0) };
    let (r, n) = reduce_to_double(ir, &p, clamped);
    let square = ir.fmul(r.head, r.head);
    let high = ir.fmul(square, polynomial(ir, &p, r.head, &taylor(2, if p.wide { 14 } else { 8 })));
    let series = ir.fadd(r.head, ir.fadd(high, r.tail));
    let half_scale = n.shifted(ir, &p, -1).power(ir, &p);
    let half = ir.fadd(ir.fmul(series, half_scale), ir.fsub(half_scale, p.float(0.5)));
    identity_near_zero(ir, &p, x, ir.fadd(half, half))
}
