//! Logarithms: the exponent, and a series of the mantissa in `s = f / (2 + f)` (fdlibm, e_log.c).

use super::{
    Constant, Cut, Double, Extended, LOG10_OF_2, Precision, cut, fast_two_sum, identity_near_zero,
    polynomial, quotient, two_product,
};
use crate::emit::ir::Ir;
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;
use std::f64::consts::{LOG2_E, LOG10_E};

/// `x = (1 + f) · 2^k` with `1 + f` between √½ and √2.
pub(super) struct Split<'c> {
    pub(super) f: FloatValue<'c>,
    pub(super) k: FloatValue<'c>,
}

pub(super) fn split<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> Split<'c> {
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
    let k = ir.sitofp(ir.sub(exponent, correction), p.ty);
    Split { f, k }
}

/// `f²/2` and what is to be added to `f − f²/2` for `ln(1 + f)`: fdlibm's form, in which the small terms are
/// summed before the large one.
fn log_terms<'c>(ir: &Ir<'c>, p: &Precision<'c>, f: FloatValue<'c>) -> (FloatValue<'c>, FloatValue<'c>) {
    let s = quotient(ir, p, f, ir.fadd(p.float(2.0), f));
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

/// `k·ln 2 + ln(1 + f) + correction`.
fn log_sum<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    Split { f, k }: Split<'c>,
    correction: Option<FloatValue<'c>>,
) -> FloatValue<'c> {
    let (half_square, tail) = log_terms(ir, p, f);
    let low = ir.fmul(k, p.float(p.ln2.tail));
    let tail = ir.fadd(tail, correction.map_or(low, |correction| ir.fadd(low, correction)));
    let small = ir.fsub(f, ir.fsub(half_square, tail));
    ir.fadd(ir.fmul(k, p.float(p.ln2.head)), small)
}

/// `ln x`.
pub(in crate::emit) fn log<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let result = log_sum(ir, &p, split(ir, &p, x), None);
    log_edges(ir, &p, x, result)
}

/// `ln(1 + x)`: where `x` is small, the series in `x`; elsewhere `ln u` with `u = 1 + x` rounded, corrected by
/// `(1 + x − u)/u` (fdlibm, s_log1p.c).
pub(in crate::emit) fn ln_1p<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let one = p.float(1.0);
    let u = ir.fadd(one, x);
    let large = ir.fcmp(FloatPredicate::OGE, x, one);
    let of_large = ir.fsub(one, ir.fsub(u, x));
    let of_small = ir.fsub(x, ir.fsub(u, one));
    let correction = ir.fdiv(ir.select_float(large, of_large, of_small), u);
    let Split { f, k } = split(ir, &p, u);
    // The interval of `split`: there k is 0 and f is x.
    let near = ir.and(
        ir.fcmp(FloatPredicate::OGT, x, p.float(std::f64::consts::FRAC_1_SQRT_2 - 1.0)),
        ir.fcmp(FloatPredicate::OLT, x, p.float(std::f64::consts::SQRT_2 - 1.0)),
    );
    let zero = p.float(0.0);
    let f = ir.select_float(near, x, f);
    let k = ir.select_float(near, zero, k);
    let correction = ir.select_float(near, zero, correction);
    let result = log_sum(ir, &p, Split { f, k }, Some(correction));
    identity_near_zero(ir, &p, x, log_edges(ir, &p, u, result))
}

/// `k + ln(1 + f)·scale`, where the head of `k` is 0 or larger than the last term, and the product is split so that it loses
/// less than half an ulp.
fn scaled_log<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    f: FloatValue<'c>,
    k: Extended<'c>,
    scale: Constant,
) -> FloatValue<'c> {
    let (half_square, tail) = log_terms(ir, p, f);
    let head = cut(ir, p, ir.fsub(f, half_square));
    let rest = ir.fadd(ir.fsub(ir.fsub(f, head), half_square), tail);
    let scale = scale.cut(p);
    let low = ir.fadd(ir.fmul(ir.fadd(rest, head), p.float(scale.tail)), ir.fmul(rest, p.float(scale.head)));
    let low = k.tail.map_or(low, |tail| ir.fadd(low, tail));
    let sum = fast_two_sum(ir, k.head, ir.fmul(head, p.float(scale.head)));
    ir.fadd(sum.head, ir.fadd(low, sum.tail))
}

/// `log₂ x`.
pub(in crate::emit) fn log2<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Split { f, k } = split(ir, &p, x);
    let scale = Constant { nearest: LOG2_E, rest: 2.035_527_374_093_103_2e-17 };
    let result = scaled_log(ir, &p, f, k.into(), scale);
    log_edges(ir, &p, x, result)
}

/// `log₁₀ x`.
pub(in crate::emit) fn log10<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Split { f, k } = split(ir, &p, x);
    // The head's products with k are exact.
    let Cut { head, tail } = LOG10_OF_2.cut(&p);
    let exponent = Double { head: ir.fmul(k, p.float(head)), tail: ir.fmul(k, p.float(tail)) };
    let scale = Constant { nearest: LOG10_E, rest: 1.098_319_650_216_765e-17 };
    let result = scaled_log(ir, &p, f, exponent.into(), scale);
    log_edges(ir, &p, x, result)
}

/// `ln x` of a positive number to twice the precision: `2·atanh s` with `s = f / (2 + f)`, where `s` and the
/// first two terms of the series carry tails.
pub(super) fn log_as_double<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> Double<'c> {
    let Split { f, k } = split(ir, p, x);
    let divisor = fast_two_sum(ir, p.float(2.0), f);
    let s = ir.fdiv(f, divisor.head);
    let product = two_product(ir, p, s, divisor.head);
    let remainder = ir.fsub(ir.fsub(f, product.head), product.tail);
    let remainder = ir.fsub(remainder, ir.fmul(s, divisor.tail));
    let s_tail = ir.fdiv(remainder, divisor.head);
    let square = two_product(ir, p, s, s);
    let twice = ir.fmul(ir.fadd(s, s), s_tail);
    let square_tail = ir.fadd(square.tail, twice);
    let third = Constant { nearest: 1.0 / 3.0, rest: 1.850_371_707_708_594_3e-17 }.double(p);
    let cubic = two_product(ir, p, square.head, third.head);
    let last = if p.wide { 13 } else { 6 };
    let coefficients: Vec<f64> = (2..=last).map(|k| 1.0 / f64::from(2 * k + 1)).collect();
    let fourth_power = ir.fmul(square.head, square.head);
    let rest = ir.fmul(fourth_power, polynomial(ir, p, square.head, &coefficients));
    let rest = ir.fadd(rest, ir.fadd(ir.fmul(square.head, third.tail), ir.fmul(square_tail, third.head)));
    let cubic_tail = ir.fadd(cubic.tail, rest);
    // s + s·cubic, then twice that, then k·ln 2.
    let higher = two_product(ir, p, s, cubic.head);
    let sum = fast_two_sum(ir, s, higher.head);
    let low = ir.fadd(ir.fmul(s_tail, cubic.head), ir.fadd(higher.tail, ir.fmul(s, cubic_tail)));
    let low = ir.fadd(ir.fadd(s_tail, low), sum.tail);
    let scaled = ir.fmul(k, p.float(p.ln2.head));
    let total = fast_two_sum(ir, scaled, ir.fadd(sum.head, sum.head));
    let tail = ir.fadd(ir.fadd(low, low), ir.fmul(k, p.float(p.ln2.tail)));
    fast_two_sum(ir, total.head, ir.fadd(total.tail, tail))
}
