//! Conversions between number formats: each rounds once, to nearest even, without library calls.

use super::ir::{Ir, float_bits};
use inkwell::FloatPredicate;
use inkwell::IntPredicate;
use inkwell::types::FloatType;
use inkwell::values::{FloatValue, IntValue};
use tile_ir::DType;

fn i32_const<'c>(ir: &Ir<'c>, value: u32) -> IntValue<'c> {
    ir.context.i32_type().const_int(u64::from(value), false)
}

/// bf16 is the top half of an f32.
pub(super) fn bf16_from_bits<'c>(ir: &Ir<'c>, bits: IntValue<'c>) -> FloatValue<'c> {
    let wide = ir.shl(ir.resize(bits, 32, false), i32_const(ir, 16));
    ir.float_of_bits(wide, ir.f32())
}

/// The bits of an f32 that bf16 represents exactly.
pub(super) fn bf16_to_bits<'c>(ir: &Ir<'c>, value: FloatValue<'c>) -> IntValue<'c> {
    ir.resize(ir.lshr(ir.bits(value), i32_const(ir, 16)), 16, false)
}

/// An f32 rounded to bf16. The carry of the rounding may run into the exponent, which is right; a NaN is
/// made quiet instead, so that cutting its low bits can't make it an infinity.
pub(super) fn round_bf16<'c>(ir: &Ir<'c>, value: FloatValue<'c>) -> FloatValue<'c> {
    let bits = ir.bits(value);
    let even = ir.and(ir.lshr(bits, i32_const(ir, 16)), i32_const(ir, 1));
    let rounded = ir.add(ir.add(bits, i32_const(ir, 0x7fff)), even);
    let quiet = ir.or(bits, i32_const(ir, 0x0040_0000));
    let chosen = ir.select_int(ir.is_nan(value), quiet, rounded);
    ir.float_of_bits(ir.and(chosen, i32_const(ir, 0xffff_0000)), ir.f32())
}

/// An f32 rounded to f16.
pub(super) fn round_f16<'c>(ir: &Ir<'c>, value: FloatValue<'c>) -> FloatValue<'c> {
    if ir.features.half_conversion {
        return ir.fpext(ir.fptrunc(value, ir.context.f16_type()), ir.f32());
    }
    let f32 = |x: f64| ir.f32().const_float(x);
    let bits = ir.bits(value);
    let sign = ir.and(bits, i32_const(ir, 0x8000_0000));
    let magnitude_bits = ir.and(bits, i32_const(ir, 0x7fff_ffff));
    let magnitude = ir.float_of_bits(magnitude_bits, ir.f32());
    // Normal results keep 10 of 23 mantissa bits.
    let even = ir.and(ir.lshr(bits, i32_const(ir, 13)), i32_const(ir, 1));
    let rounded = ir.add(ir.add(magnitude_bits, i32_const(ir, 0xfff)), even);
    let normal = ir.float_of_bits(ir.and(rounded, i32_const(ir, 0xffff_e000)), ir.f32());
    let overflow = ir.fcmp(FloatPredicate::OGT, normal, f32(65504.0));
    let normal = ir.select_float(overflow, f32(f64::INFINITY), normal);
    // Subnormal results are multiples of 2⁻²⁴, the spacing of f32 between 0.5 and 1.
    let subnormal = ir.fsub(ir.fadd(magnitude, f32(0.5)), f32(0.5));
    let is_subnormal = ir.fcmp(FloatPredicate::OLT, magnitude, f32(f64::powi(2.0, -14)));
    let finite = ir.select_float(is_subnormal, subnormal, normal);
    let signed = ir.float_of_bits(ir.or(ir.bits(finite), sign), ir.f32());
    ir.select_float(ir.is_nan(value), value, signed)
}

/// An f16 from its bits, as f32.
pub(super) fn f16_from_bits<'c>(ir: &Ir<'c>, bits: IntValue<'c>) -> FloatValue<'c> {
    if ir.features.half_conversion {
        return ir.fpext(ir.float_of_bits(bits, ir.context.f16_type()), ir.f32());
    }
    let wide = ir.resize(bits, 32, false);
    let sign = ir.shl(ir.and(wide, i32_const(ir, 0x8000)), i32_const(ir, 16));
    let magnitude = ir.shl(ir.and(wide, i32_const(ir, 0x7fff)), i32_const(ir, 13));
    // The exponent bias differs by 127 − 15 = 112; the product is exact, also for subnormals.
    let scaled = ir.fmul(ir.float_of_bits(magnitude, ir.f32()), ir.f32().const_float(f64::powi(2.0, 112)));
    let special = ir.icmp(IntPredicate::UGE, magnitude, i32_const(ir, 0x7c00 << 13));
    let special_bits = ir.or(magnitude, i32_const(ir, 0x7f80_0000));
    let result = ir.select_int(special, special_bits, ir.bits(scaled));
    ir.float_of_bits(ir.or(result, sign), ir.f32())
}

/// The bits of an f32 that f16 represents exactly.
pub(super) fn f16_to_bits<'c>(ir: &Ir<'c>, value: FloatValue<'c>) -> IntValue<'c> {
    if ir.features.half_conversion {
        return ir.bits(ir.fptrunc(value, ir.context.f16_type()));
    }
    let bits = ir.bits(value);
    let sign = ir.and(ir.lshr(bits, i32_const(ir, 16)), i32_const(ir, 0x8000));
    let magnitude = ir.and(bits, i32_const(ir, 0x7fff_ffff));
    let normal = ir.sub(ir.lshr(magnitude, i32_const(ir, 13)), i32_const(ir, 112 << 10));
    // A subnormal is its magnitude in units of 2⁻²⁴. The clamp keeps the conversion defined for the others.
    let small = ir.icmp(IntPredicate::ULT, magnitude, i32_const(ir, 0x3880_0000));
    let clamped = ir.select_int(small, magnitude, i32_const(ir, 0));
    let units = ir.fmul(ir.float_of_bits(clamped, ir.f32()), ir.f32().const_float(f64::powi(2.0, 24)));
    let subnormal = float_to_int(ir, units, DType::I32);
    let finite = ir.select_int(small, subnormal, normal);
    let infinite = ir.icmp(IntPredicate::EQ, magnitude, i32_const(ir, 0x7f80_0000));
    let result = ir.select_int(infinite, i32_const(ir, 0x7c00), finite);
    let result = ir.select_int(ir.is_nan(value), i32_const(ir, 0x7e00), result);
    ir.resize(ir.or(result, sign), 16, false)
}

/// Rust's `as` between float formats.
pub(super) fn float_to_float<'c>(ir: &Ir<'c>, x: FloatValue<'c>, to: DType) -> FloatValue<'c> {
    let wide = float_bits(x.get_type()) == 64;
    match (to, wide) {
        (DType::F64, false) => ir.fpext(x, ir.f64()),
        (DType::F64, true) => x,
        (DType::F32, true) => ir.fptrunc(x, ir.f32()),
        (_, true) => ir.round_to(f64_to_f32_odd(ir, x), to),
        (_, false) => ir.round_to(x, to),
    }
}

/// An f64 cut to an f32 whose last bit is set if anything was cut off. A second rounding, to a format of at
/// most 22 bits, then gives what one rounding of the f64 would have given.
fn f64_to_f32_odd<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let nearest = ir.fptrunc(x, ir.f32());
    let magnitude = |value: FloatValue<'c>| ir.float_intrinsic("llvm.fabs", &[value]);
    let back = ir.fpext(nearest, ir.f64());
    let finite = ir.fcmp(FloatPredicate::OLT, magnitude(nearest), ir.f32().const_float(f64::INFINITY));
    let too_big = ir.fcmp(FloatPredicate::OGT, magnitude(back), magnitude(x));
    let bits = ir.bits(nearest);
    let step = ir.resize(ir.and(too_big, finite), 32, false);
    let truncated = ir.sub(bits, step);
    let inexact = ir.fcmp(FloatPredicate::ONE, back, x);
    let sticky = ir.resize(ir.and(inexact, finite), 32, false);
    ir.float_of_bits(ir.or(truncated, sticky), ir.f32())
}

/// Rust's `as` from float to integer: truncates, saturates, NaN gives 0.
pub(super) fn float_to_int<'c>(ir: &Ir<'c>, x: FloatValue<'c>, to: DType) -> IntValue<'c> {
    let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
    let overloads = [ir.int_type(to.bits()).into(), x.get_type().into()];
    let result = ir.intrinsic(name, &overloads, &[x.into()]);
    result.expect("a conversion has a result").into_int_value()
}

/// Rust's `as` from integer (or bool) to float.
pub(super) fn int_to_float<'c>(ir: &Ir<'c>, x: IntValue<'c>, signed: bool, to: DType) -> FloatValue<'c> {
    let direct: Option<FloatType<'c>> = match to {
        DType::F32 => Some(ir.f32()),
        DType::F64 => Some(ir.f64()),
        _ => None,
    };
    if let Some(ty) = direct {
        return ir.int_to_float(x, signed, ty);
    }
    let exact = if x.get_type().get_bit_width() == 64 { sticky_53_bits(ir, x, signed) } else { x };
    float_to_float(ir, ir.int_to_float(exact, signed, ir.f64()), to)
}

/// A 64-bit integer that f64 represents exactly and that rounds to 11 or fewer bits as `x` does: if its
/// magnitude needs more than 53 bits, the low 11 are folded into bit 11.
fn sticky_53_bits<'c>(ir: &Ir<'c>, x: IntValue<'c>, signed: bool) -> IntValue<'c> {
    let low = ir.and(x, ir.i64(0x7ff));
    let any = ir.resize(ir.icmp(IntPredicate::NE, low, ir.i64(0)), 64, false);
    let folded = ir.or(ir.and(x, ir.i64(!0x7ff)), ir.shl(any, ir.i64(11)));
    let top = if signed { ir.ashr(x, ir.i64(53)) } else { ir.lshr(x, ir.i64(53)) };
    let small = ir.icmp(IntPredicate::EQ, top, ir.i64(0));
    let small = if signed { ir.or(small, ir.icmp(IntPredicate::EQ, top, ir.i64(-1))) } else { small };
    ir.select_int(small, x, folded)
}
