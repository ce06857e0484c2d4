//! Floats narrower than f32: their bits from and to an f32 that represents them, and rounding to them.
//!
//! One algorithm for every format, from its [`FloatFormat`]; f16 and 8-bit floats take the instructions where there are
//! some, and bf16, which is the top half of an f32, a shift.

use super::float_to_int;
use crate::emit::float8::Overflow;
use crate::emit::{Ir, fold};
use inkwell::values::{FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use tile_ir::DType;
use tile_ir::round::FloatFormat;

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const QUIET_NAN: u32 = 0x7fc0_0000;
const SMALLEST_NORMAL: u32 = 0x0080_0000;
/// 2⁻¹²⁷, the smallest f8e8m0fnu.
const SMALLEST_SCALE: u32 = 0x0040_0000;

fn i32_const<'c>(ir: &Ir<'c>, value: u32) -> IntValue<'c> {
    ir.context.i32_type().const_int(u64::from(value), false)
}

fn format_of(dtype: DType) -> FloatFormat {
    dtype.float_format().expect("called with a float format")
}

/// Mantissa bits that an f32 has more.
fn spare_bits(format: FloatFormat) -> u32 {
    23 - format.mantissa_bits
}

/// The bits of infinity, or of NaN in a format without one, sign excluded.
fn special(format: FloatFormat) -> u32 {
    let largest = (1 << (format.exponent_bits + format.mantissa_bits)) - 1;
    if format.has_infinity { largest >> format.mantissa_bits << format.mantissa_bits } else { largest }
}

/// A number from its bits, as f32.
pub(in crate::emit) fn from_bits<'c>(ir: &Ir<'c>, bits: IntValue<'c>, dtype: DType) -> FloatValue<'c> {
    match dtype {
        DType::F16 if ir.features.half_conversion => {
            ir.fpext(ir.float_of_bits(bits, ir.context.f16_type()), ir.f32())
        }
        DType::BF16 => {
            let wide = match fold::half_of(bits) {
                Some((word, 0)) => ir.shl(word, i32_const(ir, 16)),
                Some((word, _)) => ir.and(word, i32_const(ir, 0xffff_0000)),
                None => ir.shl(ir.zext_or_trunc(bits, 32), i32_const(ir, 16)),
            };
            ir.float_of_bits(wide, ir.f32())
        }
        _ => {
            if let Some(conversion) = ir.float8_conversion(dtype) {
                return ir.widened_float8(bits, dtype, conversion);
            }
            let number = match dtype {
                DType::F8E8M0FNU => power_of_two(ir, bits),
                DType::F8E5M2 if ir.features.half_conversion => upper_half_of_f16(ir, bits),
                _ => from_bits_of(ir, bits, format_of(dtype)),
            };
            ir.note_origin(number, dtype, bits);
            number
        }
    }
}

/// A power of two from its exponent, biased as that of an f32. The smallest is an f32's largest subnormal power of two.
fn power_of_two<'c>(ir: &Ir<'c>, bits: IntValue<'c>) -> FloatValue<'c> {
    let exponent = ir.zext_or_trunc(bits, 32);
    let is = |code: u32| ir.icmp(IntPredicate::EQ, exponent, i32_const(ir, code));
    let normal = ir.shl(exponent, i32_const(ir, 23));
    let number = ir.select_int(is(0), i32_const(ir, SMALLEST_SCALE), normal);
    ir.float_of_bits(ir.select_int(is(0xff), i32_const(ir, QUIET_NAN), number), ir.f32())
}

/// An f16 from its upper half.
fn upper_half_of_f16<'c>(ir: &Ir<'c>, bits: IntValue<'c>) -> FloatValue<'c> {
    let wide = ir.zext_or_trunc(bits, 16);
    from_bits(ir, ir.shl(wide, wide.get_type().const_int(8, false)), DType::F16)
}

fn from_bits_of<'c>(ir: &Ir<'c>, bits: IntValue<'c>, format: FloatFormat) -> FloatValue<'c> {
    let (wide, spare) = (ir.zext_or_trunc(bits, 32), spare_bits(format));
    let width = 1 + format.exponent_bits + format.mantissa_bits;
    let sign = ir.shl(ir.and(wide, i32_const(ir, 1 << (width - 1))), i32_const(ir, 32 - width));
    let code = ir.and(wide, i32_const(ir, (1 << (width - 1)) - 1));
    let magnitude = ir.shl(code, i32_const(ir, spare));
    // The exponent bias differs by 127 − bias; the product is exact, also for subnormals.
    let scale = ir.f32().const_float(2f64.powi(127 - format.bias()));
    let number = ir.bits(ir.fmul(ir.float_of_bits(magnitude, ir.f32()), scale));
    let is_special = ir.icmp(IntPredicate::UGE, code, i32_const(ir, special(format)));
    let special_bits = if format.has_infinity {
        ir.or(magnitude, i32_const(ir, INFINITY))
    } else {
        i32_const(ir, QUIET_NAN)
    };
    let result = ir.select_int(is_special, special_bits, number);
    ir.float_of_bits(ir.or(result, sign), ir.f32())
}

/// The bits of an f32 that the format represents exactly.
pub(in crate::emit) fn to_bits<'c>(ir: &Ir<'c>, value: FloatValue<'c>, dtype: DType) -> IntValue<'c> {
    match dtype {
        DType::F16 if ir.features.half_conversion => ir.bits(ir.fptrunc(value, ir.context.f16_type())),
        DType::BF16 => {
            let bits = ir.bits(value);
            let (word, place) = fold::upper_half_of(bits).unwrap_or((bits, 16));
            ir.zext_or_trunc(ir.lshr(word, i32_const(ir, place as u32)), 16)
        }
        _ => ir.origin(value, dtype).unwrap_or_else(|| {
            let bits = match dtype {
                // The exponent of an f32; that of NaN is NaN.
                DType::F8E8M0FNU => ir.lshr(ir.bits(value), i32_const(ir, 23)),
                _ => to_bits_of(ir, value, format_of(dtype)),
            };
            ir.zext_or_trunc(bits, dtype.bits())
        }),
    }
}

fn to_bits_of<'c>(ir: &Ir<'c>, value: FloatValue<'c>, format: FloatFormat) -> IntValue<'c> {
    let bits = ir.bits(value);
    let width = 1 + format.exponent_bits + format.mantissa_bits;
    let sign = ir.and(ir.lshr(bits, i32_const(ir, 32 - width)), i32_const(ir, 1 << (width - 1)));
    let magnitude = ir.and(bits, i32_const(ir, !SIGN));
    let bias = ((127 - format.bias()) as u32) << format.mantissa_bits;
    let normal = ir.sub(ir.lshr(magnitude, i32_const(ir, spare_bits(format))), i32_const(ir, bias));
    // A subnormal is its magnitude in units. The clamp keeps the conversion defined for the others.
    let smallest_normal = ((127 + format.min_exponent()) as u32) << 23;
    let small = ir.icmp(IntPredicate::ULT, magnitude, i32_const(ir, smallest_normal));
    let clamped = ir.select_int(small, magnitude, i32_const(ir, 0));
    let units_in_one = 2f64.powi(format.mantissa_bits as i32 - format.min_exponent());
    let units = ir.fmul(ir.float_of_bits(clamped, ir.f32()), ir.f32().const_float(units_in_one));
    let subnormal = float_to_int(ir, units, DType::I32);
    let finite = ir.select_int(small, subnormal, normal);
    let infinite = ir.icmp(IntPredicate::EQ, magnitude, i32_const(ir, INFINITY));
    let result = ir.select_int(infinite, i32_const(ir, special(format)), finite);
    let largest = (1 << (width - 1)) - 1;
    let quiet_bit = 1 << (format.mantissa_bits - 1);
    let nan = if format.has_infinity { special(format) | quiet_bit } else { largest };
    let result = ir.select_int(ir.is_nan(value), i32_const(ir, nan), result);
    ir.or(result, sign)
}

/// An f32 rounded to the format, to nearest even.
pub(in crate::emit) fn round_narrow<'c>(ir: &Ir<'c>, value: FloatValue<'c>, dtype: DType) -> FloatValue<'c> {
    if let Some(conversion) = ir.float8_conversion(dtype) {
        return ir.rounded_to_float8s(&[value.into()], dtype, conversion, Overflow::Leaves)[0]
            .into_float_value();
    }
    match dtype {
        DType::F16 if ir.features.half_conversion => {
            ir.fpext(ir.fptrunc(value, ir.context.f16_type()), ir.f32())
        }
        DType::BF16 => round_bf16(ir, value),
        DType::F8E8M0FNU => round_to_power_of_two(ir, value),
        _ => round_to_format(ir, value, format_of(dtype)),
    }
}

/// The magnitude's bits with the low `spare` ones rounded off. The carry of the rounding may run into the
/// exponent, which is right.
fn round_off<'c>(ir: &Ir<'c>, bits: IntValue<'c>, spare: u32) -> IntValue<'c> {
    let even = ir.and(ir.lshr(bits, i32_const(ir, spare)), i32_const(ir, 1));
    ir.add(ir.add(bits, i32_const(ir, (1 << (spare - 1)) - 1)), even)
}

/// A NaN is made quiet, so that cutting its low bits can't make it an infinity.
fn round_bf16<'c>(ir: &Ir<'c>, value: FloatValue<'c>) -> FloatValue<'c> {
    if let Some(names) = ir.features.pair_rounding {
        // With 0 for the lower half the word is the number as f32.
        return ir.float_of_bits(ir.rounded_pair(names.bf16, value, ir.f32().const_zero()), ir.f32());
    }
    let bits = ir.bits(value);
    let quiet = ir.or(bits, i32_const(ir, 0x0040_0000));
    let chosen = ir.select_int(ir.is_nan(value), quiet, round_off(ir, bits, 16));
    ir.float_of_bits(ir.and(chosen, i32_const(ir, 0xffff_0000)), ir.f32())
}

/// To the nearest power of two from 2⁻¹²⁷ to 2¹²⁷; from halfway between two, to the larger one, whose one bit of a
/// significand is even as seen from the smaller. Zeros are as near to the smallest as any number is; negative numbers, and
/// what is too large, become NaN.
fn round_to_power_of_two<'c>(ir: &Ir<'c>, value: FloatValue<'c>) -> FloatValue<'c> {
    let magnitude = ir.and(ir.bits(value), i32_const(ir, !SIGN));
    let rounded = |step: u32| ir.and(ir.add(magnitude, i32_const(ir, step / 2)), i32_const(ir, !(step - 1)));
    let below = |bits, limit| ir.icmp(IntPredicate::ULT, bits, i32_const(ir, limit));
    // Between the two smallest lie subnormal numbers of f32, which have no leading one: halfway are one and a half.
    let halfway = SMALLEST_SCALE + SMALLEST_SCALE / 2;
    let smallest = ir.select_int(
        below(magnitude, halfway),
        i32_const(ir, SMALLEST_SCALE),
        i32_const(ir, SMALLEST_NORMAL),
    );
    let nearest = ir.select_int(below(magnitude, SMALLEST_NORMAL), smallest, rounded(SMALLEST_NORMAL));
    let is_negative = ir.fcmp(FloatPredicate::OLT, value, ir.f32().const_zero());
    let is_number = ir.and(below(nearest, INFINITY), ir.xor(is_negative, ir.bool(true)));
    ir.float_of_bits(ir.select_int(is_number, nearest, i32_const(ir, QUIET_NAN)), ir.f32())
}

fn round_to_format<'c>(ir: &Ir<'c>, value: FloatValue<'c>, format: FloatFormat) -> FloatValue<'c> {
    let f32 = |x: f64| ir.f32().const_float(x);
    let (bits, spare) = (ir.bits(value), spare_bits(format));
    let sign = ir.and(bits, i32_const(ir, SIGN));
    let magnitude_bits = ir.and(bits, i32_const(ir, !SIGN));
    let magnitude = ir.float_of_bits(magnitude_bits, ir.f32());
    let kept = ir.and(round_off(ir, magnitude_bits, spare), i32_const(ir, !((1 << spare) - 1)));
    let normal = ir.float_of_bits(kept, ir.f32());
    let overflow = ir.fcmp(FloatPredicate::OGT, normal, f32(format.max()));
    let beyond = if format.has_infinity { f64::INFINITY } else { f64::NAN };
    let normal = ir.select_float(overflow, f32(beyond), normal);
    // Where f32 has the spacing of the format's subnormals, adding rounds to it.
    let same_spacing = f32(2f64.powi(format.min_exponent() - format.mantissa_bits as i32 + 23));
    let subnormal = ir.fsub(ir.fadd(magnitude, same_spacing), same_spacing);
    let is_subnormal = ir.fcmp(FloatPredicate::OLT, magnitude, f32(2f64.powi(format.min_exponent())));
    let finite = ir.select_float(is_subnormal, subnormal, normal);
    let signed = ir.float_of_bits(ir.or(ir.bits(finite), sign), ir.f32());
    ir.select_float(ir.is_nan(value), value, signed)
}
