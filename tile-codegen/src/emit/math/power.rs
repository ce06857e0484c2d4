//! Powers and roots.

use super::exponential::exp_of_double;
use super::logarithm::log_as_double;
use super::{Double, Precision, abs, clamp, two_product};
use crate::emit::ir::Ir;
use inkwell::values::{FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

/// `a^b`, as `e^(b·ln|a|)` with the exponent to twice the precision; the edges are those of IEEE 754-2019
/// `pow`.
pub(in crate::emit) fn powf<'c>(ir: &Ir<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, a);
    let (zero, one) = (p.float(0.0), p.float(1.0));
    let magnitude = abs(ir, a);
    let is_zero = ir.fcmp(FloatPredicate::OEQ, magnitude, zero);
    let is_infinite = ir.fcmp(FloatPredicate::OEQ, magnitude, p.float(f64::INFINITY));
    let at_edge = ir.or(is_zero, is_infinite);
    // The powers of 0, which is what masked loads fill tiles with, would underflow on their way, and x86 takes a hundred
    // cycles for each vector with a subnormal number.
    let logarithm = log_as_double(ir, &p, ir.select_float(at_edge, one, magnitude));
    // A larger exponent overflows or vanishes for every base but 1, whose logarithm is 0.
    let limit = f64::powi(2.0, p.mantissa_bits as i32 + 17);
    let exponent = clamp(ir, &p, b, -limit, limit);
    let product = two_product(ir, &p, exponent, logarithm.head);
    let tail = ir.fadd(product.tail, ir.fmul(exponent, logarithm.tail));
    let inside = exp_of_double(ir, &p, Double { head: product.head, tail });

    let grows = ir.xor(is_zero, ir.fcmp(FloatPredicate::OGT, b, zero));
    let edge = ir.select_float(grows, p.float(f64::INFINITY), zero);
    let result = ir.select_float(at_edge, edge, inside);

    let negative = ir.icmp(IntPredicate::SLT, ir.bits(a), p.int(ir, 0));
    let integer = is_integer(ir, b);
    let even = is_integer(ir, ir.fmul(b, p.float(0.5)));
    let odd = ir.and(integer, ir.xor(even, ir.bool(true)));
    let result = ir.select_float(ir.and(negative, odd), ir.fneg(result), result);
    let undefined = ir.and(negative, ir.xor(ir.or(integer, at_edge), ir.bool(true)));
    let undefined = ir.or(undefined, ir.fcmp(FloatPredicate::UNO, a, b));
    let result = ir.select_float(undefined, p.float(f64::NAN), result);
    let always_one = ir.or(ir.fcmp(FloatPredicate::OEQ, a, one), ir.fcmp(FloatPredicate::OEQ, b, zero));
    ir.select_float(always_one, one, result)
}

fn is_integer<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> IntValue<'c> {
    ir.fcmp(FloatPredicate::OEQ, ir.float_intrinsic("llvm.trunc", &[x]), x)
}

/// `√(a² + b²)` of numbers scaled by a power of two, so that the larger is near 1. What the smaller loses then is below the
/// last place of the sum.
pub(in crate::emit) fn hypot<'c>(ir: &Ir<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, a);
    let (a, b) = (abs(ir, a), abs(ir, b));
    // As integers floats that aren't negative are ordered, and NaN is beyond infinity.
    let [larger, smaller] = {
        let (bits_a, bits_b) = (ir.bits(a), ir.bits(b));
        let above = ir.icmp(IntPredicate::UGT, bits_a, bits_b);
        [ir.select_float(above, a, b), ir.select_float(above, b, a)]
    };
    // The field of the larger exponent, where its power of two and the inverse of that are normal numbers.
    let field = |value: i64| p.int(ir, value << p.mantissa_bits);
    let exponent = ir.and(ir.bits(larger), field(2 * p.bias + 1));
    let exponent = ir.greater(exponent, field(1));
    let exponent = ir.lesser(exponent, field(2 * p.bias - 1));
    let [down, up] = [ir.sub(field(2 * p.bias), exponent), exponent].map(|bits| ir.float_of_bits(bits, p.ty));
    let [x, y] = [larger, smaller].map(|side| ir.fmul(side, down));
    let root = ir.float_intrinsic("llvm.sqrt", &[ir.mul_add(x, x, ir.fmul(y, y))]);
    let infinity = p.float(f64::INFINITY);
    let is_infinite = |side| ir.fcmp(FloatPredicate::OEQ, side, infinity);
    ir.select_float(ir.or(is_infinite(a), is_infinite(b)), infinity, ir.fmul(root, up))
}

/// The cube root: a third of the exponent, then Halley's iteration, which triples the correct digits.
pub(in crate::emit) fn cbrt<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = abs(ir, x);
    let tiny = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(f64::powi(2.0, 1 - p.bias as i32)));
    let shift = if p.wide { 18 } else { 8 };
    // Three times the largest numbers would overflow.
    let huge = ir.fcmp(FloatPredicate::OGT, magnitude, p.float(f64::powi(2.0, p.bias as i32 - 3)));
    let scale = |exponent: i32| {
        let down = ir.select_float(huge, p.float(f64::powi(2.0, -exponent)), p.float(1.0));
        ir.select_float(tiny, p.float(f64::powi(2.0, exponent)), down)
    };
    let scaled = ir.fmul(magnitude, scale(3 * shift));
    // A third of the bits has a third of the exponent; two thirds of the bias restore it. The mantissa is
    // then up to 6 % too large; 0.03306 is the shift that balances the error (fdlibm, s_cbrt.c).
    let bias =
        (p.bias as f64 - p.bias as f64 / 3.0 - 0.033_062_356_51) * f64::powi(2.0, p.mantissa_bits as i32);
    let bits = p.int(ir, bias as i64);
    let third = ir.udiv(ir.bits(scaled), p.int(ir, 3));
    let mut root = ir.float_of_bits(ir.add(third, bits), p.ty);
    for _ in 0..if p.wide { 3 } else { 2 } {
        let cube = ir.fmul(ir.fmul(root, root), root);
        let excess = ir.fsub(cube, scaled);
        let divisor = ir.fadd(ir.fadd(cube, cube), scaled);
        root = ir.fsub(root, ir.fmul(root, ir.fdiv(excess, divisor)));
    }
    let result = ir.float_intrinsic("llvm.copysign", &[ir.fmul(root, scale(-shift)), x]);
    // Zero, infinities and NaN are their own roots.
    let finite = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(f64::INFINITY));
    let ordinary = ir.and(finite, ir.fcmp(FloatPredicate::ONE, x, p.float(0.0)));
    ir.select_float(ordinary, result, x)
}
