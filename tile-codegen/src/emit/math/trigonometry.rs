//! Sine, cosine and tangent: the Taylor series of the reduced angle. How the tail of the angle enters is
//! fdlibm's (k_sin.c, k_cos.c).

use super::reduction::{Reduced, reduce};
use super::{Double, Precision, abs, polynomial};
use crate::emit::ir::{Ir, float_bits};
use inkwell::IntPredicate;
use inkwell::values::{FloatValue, IntValue};

/// `±1/first!, ∓1/(first + 2)!, …` up to `1/last!`, the first negative.
fn alternating(first: u32, last: u32) -> Vec<f64> {
    let factorial = |k: u32| (1..=k).map(f64::from).product::<f64>();
    let terms = (first..=last).step_by(2).zip([-1.0, 1.0].into_iter().cycle());
    terms.map(|(k, sign)| sign / factorial(k)).collect()
}

/// The sine of an angle up to π/4.
fn sine<'c>(ir: &Ir<'c>, p: &Precision<'c>, r: Double<'c>) -> FloatValue<'c> {
    let z = ir.fmul(r.head, r.head);
    let series = polynomial(ir, p, z, &alternating(3, if p.wide { 17 } else { 9 }));
    let slope = ir.fsub(p.float(1.0), ir.fmul(p.float(0.5), z));
    let correction = ir.fmul(r.tail, slope);
    ir.fadd(r.head, ir.mul_add(ir.fmul(r.head, z), series, correction))
}

/// The cosine of an angle up to π/4.
fn cosine<'c>(ir: &Ir<'c>, p: &Precision<'c>, r: Double<'c>) -> FloatValue<'c> {
    let z = ir.fmul(r.head, r.head);
    let series = polynomial(ir, p, z, &alternating(6, if p.wide { 18 } else { 10 }));
    let fourth = ir.mul_add(z, series, p.float(1.0 / 24.0));
    let half = ir.fmul(p.float(0.5), z);
    let head = ir.fsub(p.float(1.0), half);
    let lost = ir.fsub(ir.fsub(p.float(1.0), head), half);
    let small = ir.fsub(ir.fmul(ir.fmul(z, z), fourth), ir.fmul(r.head, r.tail));
    ir.fadd(head, ir.fadd(lost, small))
}

/// The bit of a quadrant that says whether it is odd.
fn is_odd<'c>(ir: &Ir<'c>, p: &Precision<'c>, quadrant: IntValue<'c>) -> IntValue<'c> {
    ir.icmp(IntPredicate::NE, ir.and(quadrant, p.int(ir, 1)), p.int(ir, 0))
}

/// `x` negated in the lower half of the circle, quadrants 2 and 3.
fn negate_below<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    quadrant: IntValue<'c>,
    x: FloatValue<'c>,
) -> FloatValue<'c> {
    let to_sign = i64::from(float_bits(p.ty)) - 2;
    let sign = ir.shl(ir.and(quadrant, p.int(ir, 2)), p.int(ir, to_sign));
    ir.float_of_bits(ir.xor(ir.bits(x), sign), p.ty)
}

/// `y` negated where `x` is.
fn odd_in<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>, y: FloatValue<'c>) -> FloatValue<'c> {
    let sign_bit = ir.shl(p.int(ir, 1), p.int(ir, i64::from(float_bits(p.ty)) - 1));
    let sign = ir.and(ir.bits(x), sign_bit);
    ir.float_of_bits(ir.xor(ir.bits(y), sign), p.ty)
}

/// Sine.
pub(in crate::emit) fn sin<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Reduced { quadrant, r } = reduce(ir, &p, abs(ir, x));
    let result = ir.select_float(is_odd(ir, &p, quadrant), cosine(ir, &p, r), sine(ir, &p, r));
    odd_in(ir, &p, x, negate_below(ir, &p, quadrant, result))
}

/// Cosine.
pub(in crate::emit) fn cos<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Reduced { quadrant, r } = reduce(ir, &p, abs(ir, x));
    let result = ir.select_float(is_odd(ir, &p, quadrant), sine(ir, &p, r), cosine(ir, &p, r));
    negate_below(ir, &p, ir.add(quadrant, p.int(ir, 1)), result)
}

/// Tangent.
pub(in crate::emit) fn tan<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Reduced { quadrant, r } = reduce(ir, &p, abs(ir, x));
    let (sine, cosine) = (sine(ir, &p, r), cosine(ir, &p, r));
    let odd = is_odd(ir, &p, quadrant);
    let numerator = ir.select_float(odd, ir.fneg(cosine), sine);
    let denominator = ir.select_float(odd, sine, cosine);
    odd_in(ir, &p, x, ir.fdiv(numerator, denominator))
}
