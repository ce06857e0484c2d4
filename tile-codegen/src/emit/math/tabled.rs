//! Exponentials of f32 by a table of the 16th roots of powers of two, where vectors have instructions that
//! take entries and scale by a rounded float ([`crate::emit::lanewise`]): the polynomial has half the degree, and the
//! argument no clamps. Whatever the remainder, kept near zero, its power is a positive number, and scaling that by the
//! rounded argument gives 0 or ∞ where it must, NaN of NaN, and subnormal numbers rounded once.

use super::{Constant, Precision, less_multiple, polynomial, remainder_of_square};
use crate::emit::ir::Ir;
use crate::emit::lanewise::Table;
use inkwell::values::{FloatValue, IntValue};
use std::f64::consts::{LN_2, LN_10, LOG2_10, LOG2_E, LOG10_2};

/// Entries of a table, and parts into which powers of two are divided.
const ENTRIES: usize = 16;

/// Whether functions of this precision are computed here.
pub(super) fn has_tables(ir: &Ir<'_>, p: &Precision<'_>) -> bool {
    ir.features.lanewise && !p.wide
}

/// A number rounded to sixteenths.
struct Sixteenths<'c> {
    number: FloatValue<'c>,
    /// An integer whose last four bits are those of the number of sixteenths.
    bits: IntValue<'c>,
}

/// Rounds `a·b`, whose magnitude is far below `2^18`; adding this pushes out what is below a sixteenth, and the low bits of
/// the sum count sixteenths.
fn sixteenths<'c>(ir: &Ir<'c>, p: &Precision<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> Sixteenths<'c> {
    let magic = p.float(1.5 * f64::powi(2.0, p.mantissa_bits as i32) / ENTRIES as f64);
    let sum = ir.mul_add(a, b, magic);
    Sixteenths { number: ir.fsub(sum, magic), bits: ir.bits(sum) }
}

/// `(e^r − 1)/r` for `|r| <= ln 2 / 32`: the polynomial that begins so with the least error of `e^r`, 1.6e-9.
const SERIES: [f64; 3] = [1.0, 5.000_161_897_116e-1, 1.666_671_856_061e-1];

/// `factor·2^(k/16)`.
fn roots(factor: f64) -> [f64; ENTRIES] {
    std::array::from_fn(|k| factor * (k as f64 / ENTRIES as f64).exp2())
}

/// What [`roots`] are as f32.
fn entry_of_roots<'c>(ir: &Ir<'c>, name: &str, factor: f64, n: &Sixteenths<'c>) -> FloatValue<'c> {
    ir.entry(&Table { name, entries: roots(factor).map(|root| root as f32) }, n.bits)
}

/// `e^r · 2^n`, where `|r| <= ln 2 / 32`, within 1 ulp, half of which is the root's.
fn power<'c>(ir: &Ir<'c>, p: &Precision<'c>, r: FloatValue<'c>, n: &Sixteenths<'c>) -> FloatValue<'c> {
    let root = entry_of_roots(ir, "roots", 1.0, n);
    let sum = ir.mul_add(polynomial(ir, p, r, &SERIES), ir.fmul(root, r), root);
    ir.scaled_by(sum, n.number)
}

/// [`power`] with little more than the last rounding's error: a second table has what the roots lack.
fn precise_power<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    r: FloatValue<'c>,
    n: &Sixteenths<'c>,
) -> FloatValue<'c> {
    let root = entry_of_roots(ir, "roots", 1.0, n);
    let rests = roots(1.0).map(|root| (root - f64::from(root as f32)) as f32);
    let rest = ir.entry(&Table { name: "rests", entries: rests }, n.bits);
    let above = ir.mul_add(polynomial(ir, p, r, &SERIES), ir.fmul(root, r), rest);
    ir.scaled_by(ir.fadd(root, above), n.number)
}

/// A remainder, or something as small where it means nothing: the argument was so large, infinite or NaN.
fn small<'c>(ir: &Ir<'c>, r: FloatValue<'c>) -> FloatValue<'c> {
    ir.bounded(r, 1.0 / 32.0)
}

/// `x = n·ln 2 + r`.
fn reduce<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> (FloatValue<'c>, Sixteenths<'c>) {
    let n = sixteenths(ir, p, x, p.float(LOG2_E));
    (less_multiple(ir, p, x, n.number, p.ln2), n)
}

/// `eˣ`.
pub(super) fn exp<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let (r, n) = reduce(ir, p, x);
    power(ir, p, small(ir, r), &n)
}

/// `eˣ · 2^shift`, with little more than the last rounding's error.
pub(super) fn precise_exp<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    x: FloatValue<'c>,
    shift: i64,
) -> FloatValue<'c> {
    let (r, n) = reduce(ir, p, x);
    let number = if shift == 0 { n.number } else { ir.fadd(n.number, p.float(shift as f64)) };
    precise_power(ir, p, small(ir, r), &Sixteenths { number, ..n })
}

/// `2ˣ`.
pub(super) fn exp2<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let n = sixteenths(ir, p, x, p.float(1.0));
    let r = ir.fmul(ir.fsub(x, n.number), p.float(LN_2));
    power(ir, p, small(ir, r), &n)
}

/// `10ˣ`: `x = n·log₁₀ 2 + r`, then `e^(r·ln 10) · 2^n`.
pub(super) fn exp10<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let n = sixteenths(ir, p, x, p.float(LOG2_10));
    let r = less_multiple(ir, p, x, n.number, Constant::of(LOG10_2).cut(p));
    power(ir, p, small(ir, ir.fmul(r, p.float(LN_10))), &n)
}

/// `factor·e^(−m²/2)` for `m` up to 15.
pub(super) fn exp_of_half_square<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    m: FloatValue<'c>,
    factor: f64,
) -> FloatValue<'c> {
    let n = sixteenths(ir, p, ir.fmul(m, p.float(-LOG2_E / 2.0)), m);
    let r = remainder_of_square(ir, p, m, n.number);
    let series: Vec<f64> = (1..).zip(SERIES).map(|(k, c)| c * f64::powi(-0.5, k)).collect();
    let root = entry_of_roots(ir, "factors", factor, &n);
    let sum = ir.mul_add(polynomial(ir, p, r, &series), ir.fmul(root, r), root);
    ir.scaled_by(sum, n.number)
}
