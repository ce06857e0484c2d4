//! `a·b + c` with one rounding, with and without the instruction.
//!
//! Floats up to f32 are multiplied exactly in f64; the sum is rounded to odd, so that the format's own rounding
//! sees what was cut off. For f64 without the instruction the product is a pair of f64, after Boldo and Melquiond,
//! "Emulation of a FMA and correctly rounded sums": exact unless an intermediate result leaves the range of f64.

use super::convert::float_to_float;
use super::ir::{Ir, Value};
use inkwell::values::FloatValue;
use inkwell::{FloatPredicate, IntPredicate};
use tile_ir::DType;

impl<'c> Ir<'c> {
    /// Op `mul_add`.
    pub(crate) fn fused_mul_add(&self, dtype: DType, operands: [Value<'c>; 3]) -> Value<'c> {
        let [a, b, c] = operands.map(Value::into_float_value);
        if self.features.fma && matches!(dtype, DType::F32 | DType::F64) {
            return self.float_intrinsic("llvm.fma", &[a, b, c]).into();
        }
        if dtype == DType::F64 {
            return self.emulated_fma(a, b, c).into();
        }
        let [a, b, c] = [a, b, c].map(|x| self.fpext(x, self.f64()));
        float_to_float(self, self.add_to_odd(self.fmul(a, b), c), dtype).into()
    }

    /// `a + b` and its rounding error.
    fn two_sum(&self, a: FloatValue<'c>, b: FloatValue<'c>) -> [FloatValue<'c>; 2] {
        let sum = self.fadd(a, b);
        let kept = self.fsub(sum, a);
        let error = self.fadd(self.fsub(a, self.fsub(sum, kept)), self.fsub(b, kept));
        [sum, error]
    }

    /// `a · b` and its rounding error, by halves of 26 bits.
    fn two_product(&self, a: FloatValue<'c>, b: FloatValue<'c>) -> [FloatValue<'c>; 2] {
        let halves = |x: FloatValue<'c>| {
            let scaled = self.fmul(x, self.f64().const_float(134_217_729.0));
            let high = self.fsub(scaled, self.fsub(scaled, x));
            [high, self.fsub(x, high)]
        };
        let product = self.fmul(a, b);
        let ([a_high, a_low], [b_high, b_low]) = (halves(a), halves(b));
        let error = self.fsub(self.fmul(a_high, b_high), product);
        let error = self.fadd(error, self.fmul(a_high, b_low));
        let error = self.fadd(error, self.fmul(a_low, b_high));
        [product, self.fadd(error, self.fmul(a_low, b_low))]
    }

    /// `a + b`, with the last bit set if anything was cut off.
    fn add_to_odd(&self, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
        let [sum, error] = self.two_sum(a, b);
        let zero = self.f64().const_zero();
        let bits = self.bits(sum);
        let inexact = self.fcmp(FloatPredicate::ONE, error, zero);
        let even = self.icmp(IntPredicate::EQ, self.and(bits, self.i64(1)), self.i64(0));
        let up = self.fcmp(FloatPredicate::OGT, error, zero);
        let positive = self.fcmp(FloatPredicate::OGT, sum, zero);
        let outward = self.icmp(IntPredicate::EQ, up, positive);
        let step = self.select_int(outward, self.i64(1), self.i64(-1));
        let odd = self.float_of_bits(self.add(bits, step), self.f64());
        self.select_float(self.and(inexact, even), odd, sum)
    }

    fn emulated_fma(&self, a: FloatValue<'c>, b: FloatValue<'c>, c: FloatValue<'c>) -> FloatValue<'c> {
        let [product, product_error] = self.two_product(a, b);
        let [low, low_error] = self.two_sum(c, product_error);
        let [high, high_error] = self.two_sum(product, low);
        let fused = self.fadd(high, self.add_to_odd(low_error, high_error));
        // Infinities and NaNs have no error terms, and the sign of a zero is lost among them: the plain result is right.
        let (zero, infinity) = (self.f64().const_zero(), self.f64().const_float(f64::INFINITY));
        let magnitude = self.float_intrinsic("llvm.fabs", &[fused]);
        let positive = self.fcmp(FloatPredicate::OGT, magnitude, zero);
        let finite = self.fcmp(FloatPredicate::OLT, magnitude, infinity);
        let fused = self.select_float(self.and(positive, finite), fused, self.fadd(product, c));
        // To nothing nothing is added: a product that is rounded to zero keeps its sign, which a zero's own would change.
        let is_other = |x| self.fcmp(FloatPredicate::UNE, x, zero);
        let alone = self.and(self.fcmp(FloatPredicate::OEQ, c, zero), self.and(is_other(a), is_other(b)));
        self.select_float(alone, product, fused)
    }
}
