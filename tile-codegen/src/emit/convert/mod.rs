//! Conversions between number formats: each rounds once, to nearest even, without library calls.

mod directed;
mod narrow;

pub(super) use directed::{directed, round_tf32};
pub(super) use narrow::{from_bits, round_narrow, to_bits};

use super::ir::{Ir, float_bits};
use inkwell::types::FloatType;
use inkwell::values::{FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use tile_ir::DType;

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

/// A number that isn't beyond the largest of a format, which the number's type has: infinities become that, too.
pub(super) fn within<'c>(ir: &Ir<'c>, x: FloatValue<'c>, format: DType) -> FloatValue<'c> {
    let largest = format.float_format().expect("called with a float format").max();
    let largest = x.get_type().const_float(largest);
    let beyond = ir.fcmp(FloatPredicate::OGT, ir.float_intrinsic("llvm.fabs", &[x]), largest);
    ir.select_float(beyond, ir.float_intrinsic("llvm.copysign", &[largest, x]), x)
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
    let step = ir.zext_or_trunc(ir.and(too_big, finite), 32);
    let truncated = ir.sub(bits, step);
    let inexact = ir.fcmp(FloatPredicate::ONE, back, x);
    let sticky = ir.zext_or_trunc(ir.and(inexact, finite), 32);
    ir.float_of_bits(ir.or(truncated, sticky), ir.f32())
}

/// Rust's `as` from float to integer: truncates, saturates, NaN gives 0.
pub(super) fn float_to_int<'c>(ir: &Ir<'c>, x: FloatValue<'c>, to: DType) -> IntValue<'c> {
    if !ir.features.saturating_conversion {
        return saturated(ir, x, to);
    }
    let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
    let overloads = [ir.int_type(to.bits()).into(), x.get_type().into()];
    let result = ir.intrinsic(name, &overloads, &[x.into()]);
    result.expect("a conversion has a result").into_int_value()
}

/// The same by comparisons and a conversion of what is in range, which are instructions of vectors: of LLVM's saturating
/// conversions x86 makes scalar code, lane by lane.
fn saturated<'c>(ir: &Ir<'c>, x: FloatValue<'c>, to: DType) -> IntValue<'c> {
    let (float, bits, range) = (x.get_type(), to.bits(), Range::of(to, float_bits(x.get_type())));
    let kept = |predicate, x: FloatValue<'c>, bound: f64| {
        let bound = float.const_float(bound);
        ir.select_float(ir.fcmp(predicate, x, bound), x, bound)
    };
    // NaN becomes the least.
    let in_range = kept(FloatPredicate::OLT, kept(FloatPredicate::OGT, x, range.least), range.greatest);
    // Conversions to i32 have instructions where those to narrower integers, and those without a sign, have none.
    let is_signed = to.is_signed() || bits < 32;
    let mut result =
        ir.resize(ir.float_to_int(in_range, is_signed, ir.int_type(bits.max(32))), bits, is_signed);
    if !range.is_exact {
        let is_beyond = ir.fcmp(FloatPredicate::OGE, x, float.const_float(range.beyond));
        let most = !0u64 >> (64 - bits + u32::from(to.is_signed()));
        result = ir.select_int(is_beyond, result.get_type().const_int(most, false), result);
    }
    let is_zero = to.is_signed().then(|| ir.is_nan(x));
    is_zero.map_or(result, |is_zero| ir.select_int(is_zero, result.get_type().const_zero(), result))
}

/// Which floats are integers of a format.
struct Range {
    least: f64,
    /// The largest that is.
    greatest: f64,
    /// The smallest integer above the format's.
    beyond: f64,
    /// Whether `greatest` is the largest integer of the format.
    is_exact: bool,
}

impl Range {
    /// Of floats of so many bits.
    fn of(to: DType, float_bits: u32) -> Range {
        let digits = if float_bits == 64 { f64::MANTISSA_DIGITS } else { f32::MANTISSA_DIGITS };
        let digits_of_integer = if to.is_signed() { to.bits() - 1 } else { to.bits() };
        let beyond = 2f64.powi(digits_of_integer as i32);
        let step = 2f64.powi(digits_of_integer.saturating_sub(digits) as i32);
        Range {
            least: if to.is_signed() { -beyond } else { 0.0 },
            greatest: beyond - step,
            beyond,
            is_exact: digits_of_integer <= digits,
        }
    }
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
    let any = ir.zext_or_trunc(ir.icmp(IntPredicate::NE, low, ir.i64(0)), 64);
    let folded = ir.or(ir.and(x, ir.i64(!0x7ff)), ir.shl(any, ir.i64(11)));
    let top = if signed { ir.ashr(x, ir.i64(53)) } else { ir.lshr(x, ir.i64(53)) };
    let small = ir.icmp(IntPredicate::EQ, top, ir.i64(0));
    let small = if signed { ir.or(small, ir.icmp(IntPredicate::EQ, top, ir.i64(-1))) } else { small };
    ir.select_int(small, x, folded)
}
