//! The remainder of floats, exact, as a function of the module that is emitted.
//!
//! LLVM's `frem` is a library call on x86 and not selectable on GPUs. This is long division on the mantissas:
//! one bit of the quotient a step, `exponent(a) − exponent(b)` steps.

use super::ir::{Ir, float_bits};
use inkwell::IntPredicate;
use inkwell::module::Linkage;
use inkwell::values::{FloatValue, FunctionValue, IntValue};

/// `a % b` with the sign of `a`: NaN for a NaN operand, an infinite `a` or a zero `b`.
pub(super) fn fmod<'c>(ir: &Ir<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
    let name = format!("tile.fmod.f{}", float_bits(a.get_type()));
    let function = ir.module.get_function(&name).unwrap_or_else(|| define(ir, &name, a));
    let result = ir.call(function, &[a.into(), b.into()]);
    result.expect("fmod gives a float").into_float_value()
}

fn define<'c>(ir: &Ir<'c>, name: &str, like: FloatValue<'c>) -> FunctionValue<'c> {
    let ty = like.get_type();
    let caller = ir.builder.get_insert_block().expect("the builder is positioned");
    let function =
        ir.module.add_function(name, ty.fn_type(&[ty.into(), ty.into()], false), Some(Linkage::Internal));
    ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
    let param = |i| function.get_nth_param(i).expect("fmod has two parameters").into_float_value();
    let result = body(ir, param(0), param(1));
    ir.return_value(result.into());
    ir.builder.position_at_end(caller);
    function
}

/// Bits of the mantissa that are stored, and the mask of the exponent.
struct Format<'c> {
    mantissa: IntValue<'c>,
    implicit: IntValue<'c>,
    exponent_mask: IntValue<'c>,
    one: IntValue<'c>,
    zero: IntValue<'c>,
}

fn body<'c>(ir: &Ir<'c>, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
    let ty = a.get_type();
    let width = float_bits(ty);
    let int = ir.int_type(width);
    let mantissa_bits: u64 = if width == 64 { 52 } else { 23 };
    let c = |value: u64| int.const_int(value, false);
    let format = Format {
        mantissa: c(mantissa_bits),
        implicit: c(1 << mantissa_bits),
        exponent_mask: c(if width == 64 { 0x7ff } else { 0xff }),
        one: c(1),
        zero: c(0),
    };
    let sign_mask = c(1 << (width - 1));
    let sign = ir.and(ir.bits(a), sign_mask);
    let magnitude = |x: FloatValue<'c>| ir.and(ir.bits(x), ir.xor(sign_mask, int.const_all_ones()));
    let (ua, ub) = (magnitude(a), magnitude(b));
    let infinity = ir.shl(format.exponent_mask, format.mantissa);
    let invalid = ir.or(
        ir.icmp(IntPredicate::UGE, ua, infinity),
        ir.or(ir.icmp(IntPredicate::UGT, ub, infinity), ir.icmp(IntPredicate::EQ, ub, format.zero)),
    );
    let smaller = ir.icmp(IntPredicate::ULT, ua, ub);
    let simple = ir.or(invalid, smaller);
    let quick = ir.select_float(invalid, ty.const_float(f64::NAN), a);
    let results = ir.if_else(
        simple,
        || vec![quick.into()],
        || vec![ir.float_of_bits(ir.or(divide(ir, &format, ua, ub), sign), ty).into()],
    );
    results[0].into_float_value()
}

/// Exponent (at least 1) and mantissa with the implicit bit, so that the value is `mantissa · 2^exponent` in
/// units of the smallest subnormal halved.
fn split<'c>(ir: &Ir<'c>, format: &Format<'c>, bits: IntValue<'c>) -> (IntValue<'c>, IntValue<'c>) {
    let exponent = ir.lshr(bits, format.mantissa);
    let fraction = ir.and(bits, ir.sub(format.implicit, format.one));
    let subnormal = ir.icmp(IntPredicate::EQ, exponent, format.zero);
    let mantissa = ir.select_int(subnormal, fraction, ir.or(fraction, format.implicit));
    (ir.select_int(subnormal, format.one, exponent), mantissa)
}

/// The remainder of finite magnitudes `ua >= ub > 0`, as bits.
fn divide<'c>(ir: &Ir<'c>, format: &Format<'c>, ua: IntValue<'c>, ub: IntValue<'c>) -> IntValue<'c> {
    let ((ea, ma), (eb, mb)) = (split(ir, format, ua), split(ir, format, ub));
    let reduce = |m: IntValue<'c>| {
        let fits = ir.icmp(IntPredicate::UGE, m, mb);
        ir.select_int(fits, ir.sub(m, mb), m)
    };
    // A normal `ma` is below 2·mb only if mb is normal too; a subnormal mb may be far smaller, so the
    // quotient digits before the first exponent step need a division.
    let first = ir.urem(ma, mb);
    let bounds = (format.zero, ir.sub(ea, eb), format.one);
    let rest = ir.for_loop(bounds, &[first.into()], |_, carried| {
        let doubled = ir.shl(carried[0].into_int_value(), format.one);
        vec![reduce(doubled).into()]
    });
    normalize(ir, format, rest[0].into_int_value(), eb)
}

/// The bits of `mantissa · 2^exponent`: shifts up while the implicit bit is missing and exponents are left.
fn normalize<'c>(
    ir: &Ir<'c>,
    format: &Format<'c>,
    mantissa: IntValue<'c>,
    exponent: IntValue<'c>,
) -> IntValue<'c> {
    let width = mantissa.get_type().get_bit_width();
    let leading = ir
        .intrinsic("llvm.ctlz", &[mantissa.get_type().into()], &[mantissa.into(), ir.bool(false).into()])
        .expect("ctlz gives an integer")
        .into_int_value();
    let bits = mantissa.get_type().const_int(u64::from(width) - 1, false);
    let wanted = ir.sub(leading, ir.sub(bits, format.mantissa));
    let available = ir.sub(exponent, format.one);
    let shift = ir.lesser(wanted, available);
    let shifted = ir.shl(mantissa, shift);
    let exponent = ir.sub(exponent, shift);
    let normal = ir.icmp(IntPredicate::UGE, shifted, format.implicit);
    let field = ir.select_int(normal, exponent, format.zero);
    let fraction = ir.and(shifted, ir.sub(format.implicit, format.one));
    let result = ir.or(ir.shl(field, format.mantissa), fraction);
    ir.select_int(ir.icmp(IntPredicate::EQ, mantissa, format.zero), format.zero, result)
}
