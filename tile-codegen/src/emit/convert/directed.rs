//! Casts that round in a given direction: to nearest by instructions, then one step where that went astray.

use super::{float_to_float, float_to_int};
use crate::emit::{Ir, Value};
use inkwell::FloatPredicate;
use inkwell::values::{FloatValue, IntValue};
use tile_ir::round::FloatFormat;
use tile_ir::{DType, Rounding};

/// Op `cast_with`.
pub(in crate::emit) fn directed<'c>(
    ir: &Ir<'c>,
    from: DType,
    to: DType,
    rounding: Rounding,
    x: FloatValue<'c>,
) -> Value<'c> {
    if !to.is_float() {
        return float_to_int(ir, to_integer(ir, rounding, x), to).into();
    }
    let widens = |format: DType| format.float_format().map(|f| (f.exponent_bits, f.mantissa_bits));
    let exact = from == to || widens(from).zip(widens(to)).is_some_and(|(a, b)| a.0 <= b.0 && a.1 <= b.1);
    if rounding == Rounding::NearestEven || exact && to.float_format().is_some_and(|f| f.has_infinity) {
        return float_to_float(ir, x, to).into();
    }
    narrowed(ir, to, rounding, x).into()
}

fn to_integer<'c>(ir: &Ir<'c>, rounding: Rounding, x: FloatValue<'c>) -> FloatValue<'c> {
    let intrinsic = match rounding {
        Rounding::NearestEven => "llvm.roundeven",
        Rounding::TowardZero => "llvm.trunc",
        Rounding::Up => "llvm.ceil",
        Rounding::Down => "llvm.floor",
    };
    ir.float_intrinsic(intrinsic, &[x])
}

/// Whether numbers of each sign are rounded away from zero.
fn grows<'c>(ir: &Ir<'c>, rounding: Rounding, negative: IntValue<'c>) -> IntValue<'c> {
    match rounding {
        Rounding::Up => ir.xor(negative, ir.bool(true)),
        Rounding::Down => negative,
        Rounding::NearestEven | Rounding::TowardZero => ir.bool(false),
    }
}

/// What a format without a sign, and so without zero, has numbers near: the smallest for what is smaller, NaN for what is
/// negative.
fn at_least_smallest<'c>(ir: &Ir<'c>, format: FloatFormat, x: FloatValue<'c>) -> FloatValue<'c> {
    let constant = |value: f64| x.get_type().const_float(value);
    let smallest = constant(2f64.powi(format.min_exponent()));
    let kept = ir.select_float(ir.fcmp(FloatPredicate::OLT, x, smallest), smallest, x);
    ir.select_float(ir.fcmp(FloatPredicate::OLT, x, constant(0.0)), constant(f64::NAN), kept)
}

fn narrowed<'c>(ir: &Ir<'c>, to: DType, rounding: Rounding, x: FloatValue<'c>) -> FloatValue<'c> {
    let format = to.float_format().expect("called with a float format");
    let ty = x.get_type();
    let x = if format.is_signed { x } else { at_least_smallest(ir, format, x) };
    let (zero, magnitude) = (ty.const_zero(), ir.float_intrinsic("llvm.fabs", &[x]));
    let negative = ir.fcmp(FloatPredicate::OLT, x, zero);
    let away = grows(ir, rounding, negative);
    // Where nothing is infinite, what is too large takes the nearest way to the largest number first.
    let largest = ty.const_float(format.max());
    let too_large = ir.fcmp(FloatPredicate::OGT, magnitude, largest);
    let clamped = ir.float_intrinsic("llvm.copysign", &[largest, x]);
    let source = if format.has_infinity { x } else { ir.select_float(too_large, clamped, x) };
    let nearest = float_to_float(ir, source, to);
    let back = if nearest.get_type() == ty { nearest } else { ir.fpext(nearest, ty) };
    let back_magnitude = ir.float_intrinsic("llvm.fabs", &[back]);
    let source_magnitude = ir.float_intrinsic("llvm.fabs", &[source]);
    let grew = ir.fcmp(FloatPredicate::OGT, back_magnitude, source_magnitude);
    let shrank = ir.fcmp(FloatPredicate::OLT, back_magnitude, source_magnitude);
    let inward = ir.and(grew, ir.xor(away, ir.bool(true)));
    let outward = ir.and(shrank, away);
    let stored = match ir.value_to_storage(nearest.into(), to) {
        Value::FloatValue(value) => ir.bits(value),
        bits => bits.into_int_value(),
    };
    let int = |value: i64| stored.get_type().const_int(value as u64, true);
    let step = ir.select_int(inward, int(-1), ir.select_int(outward, int(1), int(0)));
    let stepped = ir.add(stored, step);
    let result = match nearest.get_type() == ir.f32() && to == DType::F32 {
        true => ir.float_of_bits(stepped, ir.f32()),
        false => ir.value_from_storage(stepped.into(), to).into_float_value(),
    };
    if format.has_infinity {
        // An infinite operand is no overflow.
        let infinite = ir.fcmp(FloatPredicate::OEQ, magnitude, ty.const_float(f64::INFINITY));
        return ir.select_float(infinite, nearest, result);
    }
    let infinite = ir.fcmp(FloatPredicate::OEQ, magnitude, ty.const_float(f64::INFINITY));
    let lost = ir.or(infinite, ir.and(too_large, away));
    let nan = result.get_type().const_float(f64::NAN);
    ir.select_float(lost, nan, result)
}

/// Leaf op `round_tf32`. A NaN stays: rounding its bits could make it infinite.
pub(in crate::emit) fn round_tf32<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let constant = |value: u64| ir.context.i32_type().const_int(value, false);
    let raised = ir.add(ir.bits(x), constant(0x1000));
    let rounded = ir.float_of_bits(ir.and(raised, constant(!0x1fff)), ir.f32());
    let is_nan: IntValue<'c> = ir.is_nan(x);
    ir.select_float(is_nan, x, rounded)
}
