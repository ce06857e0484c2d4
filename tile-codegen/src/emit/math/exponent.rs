//! Whole exponents of 2: what numbers are rounded to, and scaling by them.
//!
//! Adding `1.5·2^mantissa_bits` to a number far below that pushes its fraction out, and the sum's last bits are the integer.
//! Here they are the integer and twice the bias of exponents: halved, they are exponent fields of powers of two.

use super::Precision;
use crate::emit::ir::Ir;
use inkwell::values::{FloatValue, IntValue};

/// A number rounded to an integer `n`, to even where two are as near.
#[derive(Clone, Copy)]
pub(super) struct Exponent<'c> {
    /// `n`.
    pub(super) number: FloatValue<'c>,
    /// An integer whose last bits are `n` and twice the bias; those above the field of an exponent mean nothing.
    bits: IntValue<'c>,
}

/// What pushes the fraction out of a sum.
fn magic(p: &Precision<'_>) -> f64 {
    1.5 * f64::powi(2.0, p.mantissa_bits as i32) + 2.0 * p.bias as f64
}

impl<'c> Exponent<'c> {
    /// The integer nearest to `x`.
    pub(super) fn of(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> Exponent<'c> {
        Exponent::of_sum(ir, p, ir.fadd(x, p.float(magic(p))))
    }

    /// The integer nearest to `a·b`.
    pub(super) fn of_product(
        ir: &Ir<'c>,
        p: &Precision<'c>,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
    ) -> Exponent<'c> {
        Exponent::of_sum(ir, p, ir.mul_add(a, b, p.float(magic(p))))
    }

    fn of_sum(ir: &Ir<'c>, p: &Precision<'c>, sum: FloatValue<'c>) -> Exponent<'c> {
        Exponent { number: ir.fsub(sum, p.float(magic(p))), bits: ir.bits(sum) }
    }

    /// `n + shift` in place of `n`, where a power is scaled; the number stays.
    pub(super) fn shifted(self, ir: &Ir<'c>, p: &Precision<'c>, shift: i64) -> Exponent<'c> {
        Exponent { bits: ir.add(self.bits, p.int(ir, shift)), ..self }
    }

    /// `2^n`, where that is a normal number.
    pub(super) fn power(self, ir: &Ir<'c>, p: &Precision<'c>) -> FloatValue<'c> {
        power_of_field(ir, p, ir.sub(self.bits, p.int(ir, p.bias)))
    }

    /// `x · 2^n`, rounded once: by an instruction, or in two steps, so that neither factor leaves the normal range.
    pub(super) fn scale(self, ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
        if ir.features.scaling {
            let n = ir.sext_or_trunc(ir.sub(self.bits, p.int(ir, magic_bits(p))), 32);
            let scaled = ir.intrinsic(
                "llvm.ldexp",
                &[x.get_type().into(), n.get_type().into()],
                &[x.into(), n.into()],
            );
            return scaled.expect("it has a result").into_float_value();
        }
        let half = ir.lshr(self.bits, p.int(ir, 1));
        let once = ir.fmul(x, power_of_field(ir, p, half));
        ir.fmul(once, power_of_field(ir, p, ir.sub(self.bits, half)))
    }
}

/// The bits of [`magic`].
fn magic_bits(p: &Precision<'_>) -> i64 {
    let magic = magic(p);
    if p.wide { magic.to_bits() as i64 } else { i64::from((magic as f32).to_bits()) }
}

/// The power of two whose exponent field is the last bits of an integer, which has 0 in the next.
fn power_of_field<'c>(ir: &Ir<'c>, p: &Precision<'c>, field: IntValue<'c>) -> FloatValue<'c> {
    ir.float_of_bits(ir.shl(field, p.int(ir, p.mantissa_bits)), p.ty)
}
