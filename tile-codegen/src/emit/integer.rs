//! Leaf ops on integers that are more than an instruction.

use super::ir::{Ir, Value, built};
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ops::BinaryOp;

impl<'c> Ir<'c> {
    /// Division defined everywhere: `x / 0 = 0`, `x % 0 = x`, `MIN / −1 = MIN`, `MIN % −1 = 0`. LLVM's own
    /// is undefined there, so it divides by 1 instead and the result is chosen afterwards.
    pub(super) fn total_division(
        &self,
        op: BinaryOp,
        signed: bool,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> IntValue<'c> {
        let ty = a.get_type();
        let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
        let by_zero = self.icmp(IntPredicate::EQ, b, zero);
        let minus_one = self.icmp(IntPredicate::EQ, b, ty.const_all_ones());
        let safe = if signed { self.or(by_zero, minus_one) } else { by_zero };
        let divisor = self.select_int(safe, one, b);
        let quotient = op == BinaryOp::Div;
        let by_floats = self.features.vector_division && ty.get_bit_width() <= 32 && !b.is_const();
        let result = match (quotient, signed) {
            (true, _) if by_floats => self.quotient_of_floats(signed, a, divisor),
            (false, _) if by_floats => {
                self.sub(a, self.mul(self.quotient_of_floats(signed, a, divisor), divisor))
            }
            (true, true) => self.sdiv(a, divisor),
            (true, false) => self.udiv(a, divisor),
            (false, true) => self.srem(a, divisor),
            (false, false) => self.urem(a, divisor),
        };
        let result =
            if signed && quotient { self.select_int(minus_one, self.sub(zero, a), result) } else { result };
        self.select_int(by_zero, if quotient { zero } else { a }, result)
    }

    /// The quotient of integers of up to 32 bits, toward zero, by a division of floats, of which there are vectors.
    ///
    /// It is right: unless the exact quotient is an integer, it lies 1/b or more from the next one, the 2⁻³²th part of itself or
    /// more (2⁻¹⁶th, of 16 bits), and rounding moves it by no more than the 2⁻⁵³th part (2⁻²⁴th). So it doesn't reach an
    /// integer.
    fn quotient_of_floats(&self, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let (builder, ty) = (&self.builder, a.get_type());
        let float = if ty.get_bit_width() <= 16 { self.f32() } else { self.f64() };
        let [a, b] = [a, b].map(|x| match signed {
            true => built(builder.build_signed_int_to_float(x, float, "")),
            false => built(builder.build_unsigned_int_to_float(x, float, "")),
        });
        let quotient = self.fdiv(a, b);
        match signed {
            true => built(builder.build_float_to_signed_int(quotient, ty, "")),
            false => built(builder.build_float_to_unsigned_int(quotient, ty, "")),
        }
    }

    /// Division that rounds down or up, and the remainder that isn't negative: truncated, then corrected by one.
    pub(super) fn rounding_division(
        &self,
        op: BinaryOp,
        signed: bool,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> IntValue<'c> {
        let ty = a.get_type();
        let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
        let rest = self.total_division(BinaryOp::Rem, signed, a, b);
        if op == BinaryOp::RemEuclid {
            if !signed {
                return rest;
            }
            let magnitude = self.select_int(self.icmp(IntPredicate::SLT, b, zero), self.sub(zero, b), b);
            let below = self.icmp(IntPredicate::SLT, rest, zero);
            let by_zero = self.icmp(IntPredicate::EQ, b, zero);
            let raised = self.select_int(by_zero, rest, self.add(rest, magnitude));
            return self.select_int(below, raised, rest);
        }
        let quotient = self.total_division(BinaryOp::Div, signed, a, b);
        let inexact = self.and(self.icmp(IntPredicate::NE, rest, zero), self.icmp(IntPredicate::NE, b, zero));
        let negative =
            if signed { self.icmp(IntPredicate::SLT, self.xor(a, b), zero) } else { self.bool(false) };
        let (corrected, when) = match op {
            BinaryOp::DivFloor => (self.sub(quotient, one), negative),
            _ => (self.add(quotient, one), self.xor(negative, self.bool(true))),
        };
        self.select_int(self.and(inexact, when), corrected, quotient)
    }

    /// The product in twice the width, cut to the format's range.
    pub(super) fn saturating_mul(&self, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let bits = a.get_type().get_bit_width();
        let [a, b] = [a, b].map(|x| self.resize(x, 2 * bits, signed));
        let product = self.mul(a, b);
        let one = product.get_type().const_int(1, false);
        let power = |exponent: u32| self.shl(one, product.get_type().const_int(u64::from(exponent), false));
        let clamped = if signed {
            let most = self.sub(power(bits - 1), one);
            let least = self.sub(product.get_type().const_zero(), power(bits - 1));
            let below = self.select_int(self.icmp(IntPredicate::SLT, product, least), least, product);
            self.select_int(self.icmp(IntPredicate::SGT, below, most), most, below)
        } else {
            let most = self.sub(power(bits), one);
            self.select_int(self.icmp(IntPredicate::UGT, product, most), most, product)
        };
        self.resize(clamped, bits, signed)
    }

    /// The number of the lowest bit that is set, of a word that has one.
    pub(crate) fn lowest_bit(&self, word: IntValue<'c>) -> IntValue<'c> {
        self.count_zeros("llvm.cttz", word)
    }

    /// `llvm.ctlz` or `llvm.cttz`, defined at 0.
    pub(super) fn count_zeros(&self, intrinsic: &str, x: IntValue<'c>) -> IntValue<'c> {
        let args: [Value<'c>; 2] = [x.into(), self.bool(false).into()];
        let count = self.intrinsic(intrinsic, &[x.get_type().into()], &args);
        count.expect("a count is a result").into_int_value()
    }
}
