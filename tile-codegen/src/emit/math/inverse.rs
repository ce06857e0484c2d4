//! Inverse trigonometric functions.

use super::{Constant, Cut, Precision, RIGHT_ANGLE, abs, polynomial};
use crate::emit::ir::Ir;
use inkwell::values::{FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use std::f64::consts::FRAC_PI_4;

/// `(asin s − s) / s³` in `s²`, for `s <= 1/2`; the error of asin is below 3e-10.
const ASIN_F32: [f64; 6] = [
    1.666_665_987_24e-1,
    7.500_510_893_66e-2,
    4.451_572_437_02e-2,
    3.181_757_988_23e-2,
    1.440_271_906_81e-2,
    3.756_504_963_45e-2,
];
/// The same with an error below 1e-18.
const ASIN_F64: [f64; 13] = [
    1.666_666_666_666_676_3e-1,
    7.499_999_999_970_265e-2,
    4.464_285_717_511_764e-2,
    3.038_194_268_376_071_3e-2,
    2.237_221_565_643_500_4e-2,
    1.735_160_015_859_998_2e-2,
    1.398_096_068_122_326e-2,
    1.139_778_205_462_845_1e-2,
    1.078_649_630_581_277_2e-2,
    3.683_161_180_074_616_6e-3,
    2.176_321_933_185_995_3e-2,
    -2.107_690_954_405_834_5e-2,
    3.267_665_803_992_03e-2,
];
/// `(atan t − t) / t³` in `t²`, for `t <= tan π/8`; the error of atan is below 7e-10.
const ATAN_F32: [f64; 5] = [
    -3.333_331_549_66e-1,
    1.999_848_885_87e-1,
    -1.424_383_705_92e-1,
    1.059_591_026_61e-1,
    -6.083_210_700_87e-2,
];
/// The same with an error below 2e-18.
const ATAN_F64: [f64; 11] = [
    -3.333_333_333_333_32e-1,
    1.999_999_999_995_405e-1,
    -1.428_571_428_024_465_7e-1,
    1.111_111_078_593_023_8e-1,
    -9.090_897_830_127_072e-2,
    7.692_061_519_290_457e-2,
    -6.663_118_990_752_1e-2,
    5.847_998_427_821_233e-2,
    -5.039_796_810_271_375e-2,
    3.807_704_990_172_281_6e-2,
    -1.792_085_308_841_788_5e-2,
];

/// `π/4`.
const HALF_RIGHT_ANGLE: Constant = Constant { nearest: FRAC_PI_4, rest: 3.061_616_997_868_383e-17 };

/// `s` and `asin s − s`, where `s` is `|x|` up to a half and `√((1 − |x|)/2)` above: there
/// `asin |x| = π/2 − 2·asin s`. Above 1 both are NaN.
struct Arcsine<'c> {
    s: FloatValue<'c>,
    rest: FloatValue<'c>,
    above_half: IntValue<'c>,
}

fn arcsine<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> Arcsine<'c> {
    let magnitude = abs(ir, x);
    let half = p.float(0.5);
    let above_half = ir.fcmp(FloatPredicate::OGT, magnitude, half);
    let folded = ir.fmul(ir.fsub(p.float(1.0), magnitude), half);
    let z = ir.select_float(above_half, folded, ir.fmul(magnitude, magnitude));
    let s = ir.select_float(above_half, ir.float_intrinsic("llvm.sqrt", &[z]), magnitude);
    let series = if p.wide { polynomial(ir, p, z, &ASIN_F64) } else { polynomial(ir, p, z, &ASIN_F32) };
    Arcsine { s, rest: ir.fmul(ir.fmul(s, z), series), above_half }
}

/// Arcsine.
pub(in crate::emit) fn asin<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Arcsine { s, rest, above_half } = arcsine(ir, &p, x);
    let small = ir.fadd(s, rest);
    let right_angle = RIGHT_ANGLE.double(&p);
    let low = ir.fsub(ir.fadd(rest, rest), right_angle.tail);
    let large = ir.fsub(right_angle.head, ir.fadd(ir.fadd(s, s), low));
    ir.float_intrinsic("llvm.copysign", &[ir.select_float(above_half, large, small), x])
}

/// Arccosine.
pub(in crate::emit) fn acos<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let Arcsine { s, rest, above_half } = arcsine(ir, &p, x);
    let right_angle = RIGHT_ANGLE.double(&p);
    let signed = |value: FloatValue<'c>| ir.float_intrinsic("llvm.copysign", &[value, x]);
    // π/2 − asin x.
    let low = ir.fsub(right_angle.tail, signed(rest));
    let small = ir.fsub(right_angle.head, ir.fsub(signed(s), low));
    // 2·asin s, or π − 2·asin s.
    let near_one = ir.fadd(s, rest);
    let near_minus_one = ir.fsub(right_angle.head, ir.fadd(s, ir.fsub(rest, right_angle.tail)));
    let negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    let half = ir.select_float(negative, near_minus_one, near_one);
    ir.select_float(above_half, ir.fadd(half, half), small)
}

/// The angle of the point `(x, y)`, neither negative, and of `(−x, y)` where `mirrored`: a number of eighths of a
/// turn, and the arctangent of a slope below `tan π/8`.
fn angle<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    x: FloatValue<'c>,
    y: FloatValue<'c>,
    mirrored: IntValue<'c>,
) -> FloatValue<'c> {
    let steep = ir.fcmp(FloatPredicate::OGT, y, x);
    let (small, large) = (ir.select_float(steep, x, y), ir.select_float(steep, y, x));
    let boundary = ir.fmul(large, p.float(std::f64::consts::SQRT_2 - 1.0));
    let middle = ir.fcmp(FloatPredicate::OGT, small, boundary);
    let numerator = ir.select_float(middle, ir.fsub(small, large), small);
    let denominator = ir.select_float(middle, ir.fadd(small, large), large);
    let slope = ir.fdiv(numerator, denominator);
    let z = ir.fmul(slope, slope);
    let series = if p.wide { polynomial(ir, p, z, &ATAN_F64) } else { polynomial(ir, p, z, &ATAN_F32) };
    let arctangent = ir.fadd(slope, ir.fmul(ir.fmul(slope, z), series));
    // Reflecting at the diagonal, then at the y axis, counts the eighths from the other side.
    let eighths = ir.select_float(middle, p.float(1.0), p.float(0.0));
    let reflected = |apply, of: f64, eighths| ir.select_float(apply, ir.fsub(p.float(of), eighths), eighths);
    let eighths = reflected(mirrored, 4.0, reflected(steep, 2.0, eighths));
    let backward = ir.xor(steep, mirrored);
    let arctangent = ir.select_float(backward, ir.fneg(arctangent), arctangent);
    let Cut { head, tail } = HALF_RIGHT_ANGLE.cut(p);
    let low = ir.fadd(arctangent, ir.fmul(eighths, p.float(tail)));
    ir.fadd(ir.fmul(eighths, p.float(head)), low)
}

/// Arctangent.
pub(in crate::emit) fn atan<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let result = angle(ir, &p, p.float(1.0), abs(ir, x), ir.bool(false));
    ir.float_intrinsic("llvm.copysign", &[result, x])
}

/// The angle of the point `(x, y)` from the positive x axis, from −π to π. The sign of a zero says on which side
/// of an axis the point is.
pub(in crate::emit) fn atan2<'c>(ir: &Ir<'c>, y: FloatValue<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, y);
    let (width, height) = (abs(ir, x), abs(ir, y));
    let one = p.float(1.0);
    let both = |predicate, value: f64| {
        let is = |side| ir.fcmp(predicate, side, p.float(value));
        ir.and(is(width), is(height))
    };
    // Large numbers are scaled so that their sum is finite, and small ones so that what they are compared with has all its
    // digits. Two infinities are the diagonal, two zeros the positive x axis.
    let huge = p.float(f64::powi(2.0, p.bias as i32 - 1));
    let over = |side| ir.fcmp(FloatPredicate::OGT, side, huge);
    let scale = ir.select_float(ir.or(over(width), over(height)), p.float(0.25), one);
    let tiny = p.float(f64::powi(2.0, 3 - p.bias as i32));
    let under = |side| ir.fcmp(FloatPredicate::OLT, side, tiny);
    let up = p.float(f64::powi(2.0, p.mantissa_bits as i32 + 2));
    let scale = ir.select_float(ir.and(under(width), under(height)), up, scale);
    let infinite = both(FloatPredicate::OEQ, f64::INFINITY);
    let scaled = |side| ir.select_float(infinite, one, ir.fmul(side, scale));
    let origin = both(FloatPredicate::OEQ, 0.0);
    let [along, above] = [ir.select_float(origin, one, scaled(width)), scaled(height)];
    let mirrored = ir.icmp(IntPredicate::SLT, ir.bits(x), p.int(ir, 0));
    let angle = angle(ir, &p, along, above, mirrored);
    let result = ir.float_intrinsic("llvm.copysign", &[angle, y]);
    ir.select_float(ir.fcmp(FloatPredicate::UNO, x, y), p.float(f64::NAN), result)
}
