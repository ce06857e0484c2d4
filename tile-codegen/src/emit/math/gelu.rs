//! `x·Φ(x)` with the distribution function of the normal distribution, which is `max(x, −0) − m·Φ(−m)` with `m = |x|`: nothing
//! cancels near zero, and one function of `m` serves both sides.
//!
//! Where products are added before they are rounded, its two factors are a power of e and a quotient of polynomials in f32,
//! and a power of e and the tail of erfc in f64. Elsewhere the latter, and near zero, where errors of products would be ones
//! of the result, `Φ(x) = (1 + erf(x/√2))/2`.

use super::activation::{small_erf_series, tail_series};
use super::exponent::Exponent;
use super::exponential::{SERIES_F32, exp_without_overflow};
use super::{
    Precision, abs, approximations, bounded_magnitude, polynomial, quotient, reciprocal, remainder_of_square,
    tabled, two_product,
};
use crate::emit::ir::Ir;
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;
use std::f64::consts::{FRAC_1_SQRT_2, LOG2_E, SQRT_2};

/// `x·Φ(x)`.
pub(in crate::emit) fn gelu<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    match (ir.features.fma, p.wide) {
        (true, false) => gelu_by_quotient(ir, &p, x),
        (true, true) => gelu_by_tail(ir, &p, x),
        (false, _) => gelu_in_pieces(ir, &p, x),
    }
}

/// Beyond this `m·Φ(−m)` vanishes.
fn bound(p: &Precision<'_>) -> f64 {
    if p.wide { 38.6 } else { 14.4 }
}

/// `max(x, −0)`; NaN of NaN.
fn whole<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    ir.select_float(is_negative, p.float(-0.0), x)
}

/// `m·e^(m²/2)·Φ(−m)` for `m` from 0 to 14.4 is `FACTOR·n/(n + d)`, where `n = m·(NUMERATOR + m⁴)` and `d` are polynomials:
/// so written, the error of `n` matters only where `n` has few terms, and that of `d` where it is large. The relative error
/// is below 1.9e-8, found by Lawson's iteration at 90 points.
const FACTOR: f64 = 3.989_415_674_28e-1;
const NUMERATOR: [f64; 4] = [9.991_814_819e1, 9.214_065_837e1, 4.004_446_899e1, 9.29];
const DIFFERENCE: [f64; 4] = [7.972_300_384e1, 3.720_918_02e1, 9.359_399_274, 9.970_165_056e-1];

/// By what the coefficients are multiplied where `FACTOR` is among them: so the nearest f32 of each is near it, and the error
/// least where `m` is small and a few coefficients are all there is; found by trying 3000 numbers.
const SCALE: f64 = 1.118_351_709;

fn gelu_by_quotient<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let m = bounded_magnitude(ir, p, x, bound(p));
    let (slope, power) = if approximations(ir, p).is_some() {
        (scaled_slope(ir, p, m), exp_of_exact_half_square(ir, p, m))
    } else if tabled::has_tables(ir, p) {
        (slope(ir, p, m), tabled::exp_of_half_square(ir, p, m, FACTOR))
    } else {
        (slope(ir, p, m), exp_of_half_square(ir, p, m))
    };
    ir.mul_add(ir.fneg(slope), power, whole(ir, p, x))
}

/// `n/(n + d)` of `m`.
fn slope<'c>(ir: &Ir<'c>, p: &Precision<'c>, m: FloatValue<'c>) -> FloatValue<'c> {
    let [lower @ .., highest] = NUMERATOR;
    let first = ir.fadd(m, p.float(highest));
    let sum = lower.into_iter().rev().fold(first, |sum, c| ir.mul_add(sum, m, p.float(c)));
    let numerator = ir.fmul(sum, m);
    ir.fdiv(numerator, ir.fadd(polynomial(ir, p, m, &DIFFERENCE), numerator))
}

/// `FACTOR·n/(n + d)` of `m`, where the power can't have the factor: an instruction makes it.
fn scaled_slope<'c>(ir: &Ir<'c>, p: &Precision<'c>, m: FloatValue<'c>) -> FloatValue<'c> {
    let [a, b, c, d] = NUMERATOR.map(|coefficient| coefficient * SCALE);
    let numerator = ir.fmul(polynomial(ir, p, m, &[a, b, c, d, SCALE]), m);
    let difference = polynomial(ir, p, m, &DIFFERENCE.map(|coefficient| coefficient * SCALE / FACTOR));
    quotient(ir, p, numerator, ir.mul_add(numerator, p.float(1.0 / FACTOR), difference))
}

/// `e^(−m²/2)`. The exponent is exact: its error would be multiplied by itself.
fn exp_of_exact_half_square<'c>(ir: &Ir<'c>, p: &Precision<'c>, m: FloatValue<'c>) -> FloatValue<'c> {
    exp_without_overflow(ir, p, two_product(ir, p, ir.fmul(m, p.float(-0.5)), m))
}

/// `FACTOR·e^(−m²/2)` for `m` up to 15.
fn exp_of_half_square<'c>(ir: &Ir<'c>, p: &Precision<'c>, m: FloatValue<'c>) -> FloatValue<'c> {
    let n = Exponent::of_product(ir, p, ir.fmul(m, p.float(-LOG2_E / 2.0)), m);
    let r = remainder_of_square(ir, p, m, n.number);
    let series: Vec<f64> = (0..).zip(SERIES_F32).map(|(k, c)| FACTOR * c * f64::powi(-0.5, k)).collect();
    n.scale(ir, p, polynomial(ir, p, r, &series))
}

/// [`gelu_by_tail`], but for `|x| < 1/√2`.
fn gelu_in_pieces<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let by_tail = gelu_by_tail(ir, p, x);
    let argument = ir.fmul(x, p.float(FRAC_1_SQRT_2));
    let half = ir.fmul(argument, p.float(0.5));
    let square = ir.fmul(argument, argument);
    let erf = ir.mul_add(half, small_erf_series(ir, p, square), half);
    let middle = ir.fmul(x, ir.fadd(p.float(0.5), erf));
    // NaN isn't large: it comes out of the middle.
    let is_large = ir.fcmp(FloatPredicate::OGE, abs(ir, argument), p.float(0.5));
    ir.select_float(is_large, by_tail, middle)
}

/// `Φ(−m) = e^(−m²/2)·series/(2a + 4)` for `a = m/√2`. The small factor comes last: the others' product may be subnormal.
fn gelu_by_tail<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let m = bounded_magnitude(ir, p, x, bound(p));
    let exponential = exp_of_exact_half_square(ir, p, m);
    let r = reciprocal(ir, p, ir.fadd(m, p.float(2.0 * SQRT_2)));
    let factor = ir.fmul(tail_series(ir, p, [m, r], FRAC_1_SQRT_2), r);
    let whole = whole(ir, p, x);
    ir.mul_add(ir.fneg(factor), ir.fmul(m, exponential), whole)
}
