//! Leaf ops on scalar LLVM values, the same on every target.
//!
//! A value in a register has its **compute type**: `bool` is i1, integers are themselves, a float narrower
//! than f32 is an f32 that the format represents exactly, f32 and f64 are themselves. Every op on a narrow float
//! computes in f32 and rounds to the format, which for `+ - * / sqrt` is the correctly rounded result
//! (24 ≥ 2·11 + 2 bits: Figueroa, "When is double rounding innocuous?"). In memory a value has its
//! **storage type**: `bool` is i8, a narrow float an integer of its width.

use super::extremum::{Extremum, NanRule};
use super::float8::Overflow;
use super::ir::{Ir, Value};
use super::{convert, fmod, math, philox};
use inkwell::types::{BasicTypeEnum, FloatType};
use inkwell::values::{FloatValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tile_ir::ops::{BinaryOp, Classification, Literal, Predicate, UnaryOp};
use tile_ir::{DType, Rounding};

/// Whether the result is one of the operands but for its sign, or NaN, so that it needs no rounding.
fn gives_operand(op: BinaryOp) -> bool {
    use BinaryOp::{CopySign, Max, Maximum, Min, Minimum};
    matches!(op, Max | Min | Maximum | Minimum | CopySign)
}

impl<'c> Ir<'c> {
    /// The type of a value in registers.
    pub(crate) fn compute_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        match dtype {
            DType::Bool => self.context.bool_type().into(),
            _ if dtype.is_float() => self.float_type(dtype).into(),
            _ => self.int_type(dtype.bits()).into(),
        }
    }

    fn float_type(&self, dtype: DType) -> FloatType<'c> {
        if dtype == DType::F64 { self.f64() } else { self.f32() }
    }

    /// The type of a value in memory.
    pub(crate) fn storage_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        match dtype {
            DType::Bool => self.int_type(8).into(),
            _ if dtype.is_narrow_float() => self.int_type(dtype.bits()).into(),
            _ => self.compute_type(dtype),
        }
    }

    /// A value read from memory, in its compute type.
    pub(crate) fn value_from_storage(&self, stored: Value<'c>, dtype: DType) -> Value<'c> {
        match dtype {
            DType::Bool => {
                let byte = stored.into_int_value();
                self.icmp(IntPredicate::NE, byte, byte.get_type().const_zero()).into()
            }
            _ if dtype.is_narrow_float() => convert::from_bits(self, stored.into_int_value(), dtype).into(),
            _ => stored,
        }
    }

    /// Values read from memory, in their compute type.
    pub(crate) fn values_from_storage(&self, stored: &[Value<'c>], dtype: DType) -> Vec<Value<'c>> {
        match self.float8_conversion(dtype) {
            Some(conversion) => self.widened_float8s(stored, dtype, conversion),
            None => stored.iter().map(|&value| self.value_from_storage(value, dtype)).collect(),
        }
    }

    /// A value in its compute type, as it is kept in memory.
    pub(crate) fn value_to_storage(&self, value: Value<'c>, dtype: DType) -> Value<'c> {
        match dtype {
            DType::Bool => self.zext_or_trunc(value.into_int_value(), 8).into(),
            _ if dtype.is_narrow_float() => convert::to_bits(self, value.into_float_value(), dtype).into(),
            _ => value,
        }
    }

    /// Reads a value of this format.
    pub(crate) fn load_value(&self, pointer: PointerValue<'c>, dtype: DType) -> Value<'c> {
        self.value_from_storage(self.load(self.storage_type(dtype), pointer), dtype)
    }

    /// A literal of this format.
    pub(crate) fn literal(&self, value: Literal, dtype: DType) -> Value<'c> {
        match value {
            Literal::Float(value) => {
                let rounded = tile_ir::array::round_float(dtype, value);
                self.float_type(dtype).const_float(rounded).into()
            }
            Literal::Int(value) if dtype == DType::Bool => self.bool(value != 0).into(),
            Literal::Int(value) => self.int_type(dtype.bits()).const_int(value as u64, false).into(),
        }
    }

    /// Rounds a float in its compute type to a narrower format.
    pub(crate) fn round_to(&self, value: FloatValue<'c>, dtype: DType) -> FloatValue<'c> {
        if dtype.is_narrow_float() { convert::round_narrow(self, value, dtype) } else { value }
    }

    /// Op `unary`.
    pub(crate) fn unary(&self, op: UnaryOp, dtype: DType, x: Value<'c>) -> Value<'c> {
        match x {
            Value::FloatValue(x) if matches!(op, UnaryOp::Neg | UnaryOp::Abs) => {
                self.float_unary(op, x).into()
            }
            Value::FloatValue(x) => self.round_to(self.float_unary(op, x), dtype).into(),
            _ => self.int_unary(op, x.into_int_value()).into(),
        }
    }

    fn int_unary(&self, op: UnaryOp, x: IntValue<'c>) -> IntValue<'c> {
        let zero = x.get_type().const_zero();
        match op {
            UnaryOp::Neg => self.sub(zero, x),
            UnaryOp::Not => self.xor(x, x.get_type().const_all_ones()),
            UnaryOp::Abs => {
                let negative = self.icmp(IntPredicate::SLT, x, zero);
                self.select_int(negative, self.sub(zero, x), x)
            }
            UnaryOp::Signum => {
                let positive = self.icmp(IntPredicate::SGT, x, zero);
                let one = self.zext_or_trunc(positive, x.get_type().get_bit_width());
                self.or(self.ashr(x, self.top_bit(x)), one)
            }
            UnaryOp::CountOnes => self.int_intrinsic("llvm.ctpop", &[x]),
            UnaryOp::LeadingZeros => self.count_zeros("llvm.ctlz", x),
            UnaryOp::TrailingZeros => self.count_zeros("llvm.cttz", x),
            UnaryOp::SwapBytes => self.swap_bytes(x),
            UnaryOp::ReverseBits => self.reverse_bits(x),
            UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Log
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Ln1p
            | UnaryOp::Exp10
            | UnaryOp::ExpM1
            | UnaryOp::Sqrt
            | UnaryOp::Rsqrt
            | UnaryOp::Recip
            | UnaryOp::RoundTf32
            | UnaryOp::Tanh
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Cbrt
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Asin
            | UnaryOp::Acos
            | UnaryOp::Atan
            | UnaryOp::Asinh
            | UnaryOp::Acosh
            | UnaryOp::Atanh
            | UnaryOp::Erf
            | UnaryOp::Erfc
            | UnaryOp::Sigmoid
            | UnaryOp::Silu
            | UnaryOp::Gelu
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Trunc
            | UnaryOp::Round
            | UnaryOp::RoundTiesEven => unreachable!("verified: `{}` has float operands", op.name()),
        }
    }

    fn float_unary(&self, op: UnaryOp, x: FloatValue<'c>) -> FloatValue<'c> {
        let one = x.get_type().const_float(1.0);
        match op {
            UnaryOp::Neg => self.fneg(x),
            UnaryOp::Abs => self.float_intrinsic("llvm.fabs", &[x]),
            UnaryOp::Exp => math::exp(self, x),
            UnaryOp::Exp2 => math::exp2(self, x),
            UnaryOp::Log => math::log(self, x),
            UnaryOp::Log2 => math::log2(self, x),
            UnaryOp::Log10 => math::log10(self, x),
            UnaryOp::Ln1p => math::ln_1p(self, x),
            UnaryOp::Exp10 => math::exp10(self, x),
            UnaryOp::ExpM1 => math::exp_m1(self, x),
            UnaryOp::Sqrt => self.float_intrinsic("llvm.sqrt", &[x]),
            UnaryOp::Rsqrt => math::rsqrt(self, x),
            UnaryOp::Recip => self.fdiv(one, x),
            UnaryOp::RoundTf32 => convert::round_tf32(self, x),
            UnaryOp::Signum => {
                let sign = self.float_intrinsic("llvm.copysign", &[one, x]);
                self.select_float(self.is_nan(x), x, sign)
            }
            UnaryOp::Tanh => math::tanh(self, x),
            UnaryOp::Sinh => math::sinh(self, x),
            UnaryOp::Cosh => math::cosh(self, x),
            UnaryOp::Cbrt => math::cbrt(self, x),
            UnaryOp::Sin => math::sin(self, x),
            UnaryOp::Cos => math::cos(self, x),
            UnaryOp::Tan => math::tan(self, x),
            UnaryOp::Asin => math::asin(self, x),
            UnaryOp::Acos => math::acos(self, x),
            UnaryOp::Atan => math::atan(self, x),
            UnaryOp::Asinh => math::asinh(self, x),
            UnaryOp::Acosh => math::acosh(self, x),
            UnaryOp::Atanh => math::atanh(self, x),
            UnaryOp::Erf => math::erf(self, x),
            UnaryOp::Erfc => math::erfc(self, x),
            UnaryOp::Sigmoid => math::sigmoid(self, x),
            UnaryOp::Silu => math::silu(self, x),
            UnaryOp::Gelu => math::gelu(self, x),
            UnaryOp::Floor => self.float_intrinsic("llvm.floor", &[x]),
            UnaryOp::Ceil => self.float_intrinsic("llvm.ceil", &[x]),
            UnaryOp::Trunc => self.float_intrinsic("llvm.trunc", &[x]),
            UnaryOp::Round => self.round_half_away(x),
            UnaryOp::RoundTiesEven => self.float_intrinsic("llvm.roundeven", &[x]),
            UnaryOp::Not
            | UnaryOp::CountOnes
            | UnaryOp::LeadingZeros
            | UnaryOp::TrailingZeros
            | UnaryOp::SwapBytes
            | UnaryOp::ReverseBits => unreachable!("verified: `{}` has integer operands", op.name()),
        }
    }

    /// The position of the sign bit, as a shift amount.
    fn top_bit(&self, x: IntValue<'c>) -> IntValue<'c> {
        x.get_type().const_int(u64::from(x.get_type().get_bit_width() - 1), false)
    }

    /// The nearest integer, ties away from zero. The fraction is exact, so that numbers just below a tie stay
    /// below it; `llvm.round` is a library call on some vector types. ∞ has no fraction but NaN, which isn't
    /// at least a half.
    fn round_half_away(&self, x: FloatValue<'c>) -> FloatValue<'c> {
        let constant = |value| x.get_type().const_float(value);
        let magnitude = self.float_intrinsic("llvm.fabs", &[x]);
        let whole = self.float_intrinsic("llvm.trunc", &[magnitude]);
        let up = self.fcmp(FloatPredicate::OGE, self.fsub(magnitude, whole), constant(0.5));
        let rounded = self.select_float(up, self.fadd(whole, constant(1.0)), whole);
        self.float_intrinsic("llvm.copysign", &[rounded, x])
    }

    /// Op `binary`.
    pub(crate) fn binary(&self, op: BinaryOp, dtype: DType, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a, b) {
            (Value::FloatValue(a), Value::FloatValue(b)) => {
                let result = self.float_binary(op, a, b);
                if gives_operand(op) { result.into() } else { self.round_to(result, dtype).into() }
            }
            _ => self.int_binary(op, dtype.is_signed(), a.into_int_value(), b.into_int_value()).into(),
        }
    }

    fn float_binary(&self, op: BinaryOp, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
        match op {
            BinaryOp::Add => self.fadd(a, b),
            BinaryOp::Sub => self.fsub(a, b),
            BinaryOp::Mul => self.fmul(a, b),
            BinaryOp::Div => self.fdiv(a, b),
            BinaryOp::Rem => fmod::fmod(self, a, b),
            BinaryOp::Min => self.extremum(a, b, Extremum::Smaller, NanRule::Ignored),
            BinaryOp::Max => self.extremum(a, b, Extremum::Larger, NanRule::Ignored),
            BinaryOp::Minimum => self.extremum(a, b, Extremum::Smaller, NanRule::Kept),
            BinaryOp::Maximum => self.extremum(a, b, Extremum::Larger, NanRule::Kept),
            BinaryOp::Powf => math::powf(self, a, b),
            BinaryOp::Atan2 => math::atan2(self, a, b),
            BinaryOp::Hypot => math::hypot(self, a, b),
            BinaryOp::CopySign => self.float_intrinsic("llvm.copysign", &[a, b]),
            BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::RotateLeft
            | BinaryOp::RotateRight
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSub
            | BinaryOp::SaturatingMul
            | BinaryOp::DivFloor
            | BinaryOp::DivCeil
            | BinaryOp::RemEuclid
            | BinaryOp::MulHi
            | BinaryOp::Philox => unreachable!("verified: `{}` has integer operands", op.name()),
        }
    }

    /// The larger or smaller operand with −0 < +0.
    fn extremum(
        &self,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
        wanted: Extremum,
        nan: NanRule,
    ) -> FloatValue<'c> {
        if nan == NanRule::Ignored && self.features.lanewise && a.get_type() == self.f32() {
            return self.extremum_in_lanes(a, b, wanted);
        }
        if !self.features.extrema {
            return self.selected_extremum(a, b, wanted, nan);
        }
        let name = match (wanted, nan) {
            (Extremum::Larger, NanRule::Ignored) => "llvm.maximumnum",
            (Extremum::Smaller, NanRule::Ignored) => "llvm.minimumnum",
            (Extremum::Larger, NanRule::Kept) => "llvm.maximum",
            (Extremum::Smaller, NanRule::Kept) => "llvm.minimum",
        };
        self.float_intrinsic(name, &[a, b])
    }

    /// [`Self::extremum`] from comparisons. Of equal operands only zeros differ in their bits, and there `and` of the
    /// bits is +0, `or` is −0.
    fn selected_extremum(
        &self,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
        wanted: Extremum,
        nan: NanRule,
    ) -> FloatValue<'c> {
        let (predicate, join): (_, fn(&Self, IntValue<'c>, IntValue<'c>) -> IntValue<'c>) = match wanted {
            Extremum::Larger => (FloatPredicate::OGT, Self::and),
            Extremum::Smaller => (FloatPredicate::OLT, Self::or),
        };
        let equal = self.float_of_bits(join(self, self.bits(a), self.bits(b)), a.get_type());
        let ordered = self.select_float(self.fcmp(predicate, a, b), a, b);
        let ordered = self.select_float(self.fcmp(FloatPredicate::OEQ, a, b), equal, ordered);
        let (if_a_nan, if_b_nan) = match nan {
            NanRule::Ignored => (b, a),
            NanRule::Kept => (a, b),
        };
        let with_b = self.select_float(self.is_nan(b), if_b_nan, ordered);
        self.select_float(self.is_nan(a), if_a_nan, with_b)
    }

    pub(super) fn int_binary(
        &self,
        op: BinaryOp,
        signed: bool,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> IntValue<'c> {
        match op {
            BinaryOp::Add => self.add(a, b),
            BinaryOp::Sub => self.sub(a, b),
            BinaryOp::Mul => self.mul(a, b),
            BinaryOp::Div | BinaryOp::Rem => self.total_division(op, signed, a, b),
            BinaryOp::Min => {
                let less = if signed { IntPredicate::SLT } else { IntPredicate::ULT };
                self.select_int(self.icmp(less, a, b), a, b)
            }
            BinaryOp::Max => {
                let greater = if signed { IntPredicate::SGT } else { IntPredicate::UGT };
                self.select_int(self.icmp(greater, a, b), a, b)
            }
            BinaryOp::And => self.and(a, b),
            BinaryOp::Or => self.or(a, b),
            BinaryOp::Xor => self.xor(a, b),
            BinaryOp::Shl => self.shl(a, self.shift_amount(b)),
            BinaryOp::Shr if signed => self.ashr(a, self.shift_amount(b)),
            BinaryOp::Shr => self.lshr(a, self.shift_amount(b)),
            BinaryOp::RotateLeft | BinaryOp::RotateRight => self.rotation(op, a, b),
            BinaryOp::MulHi => self.mul_hi(signed, a, b),
            BinaryOp::Philox => philox::philox(self, a, b),
            BinaryOp::SaturatingAdd if signed => self.int_intrinsic("llvm.sadd.sat", &[a, b]),
            BinaryOp::SaturatingAdd => self.int_intrinsic("llvm.uadd.sat", &[a, b]),
            BinaryOp::SaturatingSub if signed => self.int_intrinsic("llvm.ssub.sat", &[a, b]),
            BinaryOp::SaturatingSub => self.int_intrinsic("llvm.usub.sat", &[a, b]),
            BinaryOp::SaturatingMul => self.saturating_mul(signed, a, b),
            BinaryOp::DivFloor | BinaryOp::DivCeil | BinaryOp::RemEuclid => {
                self.rounding_division(op, signed, a, b)
            }
            BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::CopySign
            | BinaryOp::Powf
            | BinaryOp::Atan2
            | BinaryOp::Hypot => unreachable!("verified: `{}` has float operands", op.name()),
        }
    }

    fn mul_hi(&self, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let bits = a.get_type().get_bit_width();
        let product = self.mul(self.resize(a, 2 * bits, signed), self.resize(b, 2 * bits, signed));
        let high = self.lshr(product, product.get_type().const_int(u64::from(bits), false));
        self.zext_or_trunc(high, bits)
    }

    /// Widths are powers of two, so the amount modulo the width is a mask.
    fn shift_amount(&self, amount: IntValue<'c>) -> IntValue<'c> {
        let mask = u64::from(amount.get_type().get_bit_width() - 1);
        self.and(amount, amount.get_type().const_int(mask, false))
    }

    /// Op `compare`; the result is an i1.
    pub(crate) fn compare(
        &self,
        predicate: Predicate,
        dtype: DType,
        a: Value<'c>,
        b: Value<'c>,
    ) -> Value<'c> {
        match (a, b) {
            (Value::FloatValue(a), Value::FloatValue(b)) => {
                let predicate = match predicate {
                    Predicate::Eq => FloatPredicate::OEQ,
                    Predicate::Ne => FloatPredicate::UNE,
                    Predicate::Lt => FloatPredicate::OLT,
                    Predicate::Le => FloatPredicate::OLE,
                    Predicate::Gt => FloatPredicate::OGT,
                    Predicate::Ge => FloatPredicate::OGE,
                };
                self.fcmp(predicate, a, b).into()
            }
            _ => {
                let predicate = match (predicate, dtype.is_signed()) {
                    (Predicate::Eq, _) => IntPredicate::EQ,
                    (Predicate::Ne, _) => IntPredicate::NE,
                    (Predicate::Lt, true) => IntPredicate::SLT,
                    (Predicate::Lt, false) => IntPredicate::ULT,
                    (Predicate::Le, true) => IntPredicate::SLE,
                    (Predicate::Le, false) => IntPredicate::ULE,
                    (Predicate::Gt, true) => IntPredicate::SGT,
                    (Predicate::Gt, false) => IntPredicate::UGT,
                    (Predicate::Ge, true) => IntPredicate::SGE,
                    (Predicate::Ge, false) => IntPredicate::UGE,
                };
                self.icmp(predicate, a.into_int_value(), b.into_int_value()).into()
            }
        }
    }

    /// Op `classify`; the result is an i1.
    pub(crate) fn classify(&self, classification: Classification, x: Value<'c>) -> Value<'c> {
        let x = x.into_float_value();
        let magnitude = self.float_intrinsic("llvm.fabs", &[x]);
        let infinity = x.get_type().const_float(f64::INFINITY);
        match classification {
            Classification::IsNan => self.is_nan(x).into(),
            Classification::IsInfinite => self.fcmp(FloatPredicate::OEQ, magnitude, infinity).into(),
            Classification::IsFinite => self.fcmp(FloatPredicate::OLT, magnitude, infinity).into(),
        }
    }

    /// Op `cast_with`.
    pub(crate) fn cast_with(&self, from: DType, to: DType, rounding: Rounding, x: Value<'c>) -> Value<'c> {
        convert::directed(self, from, to, rounding, x.into_float_value())
    }

    /// Op `saturating_cast`.
    pub(crate) fn saturating_cast(&self, from: DType, to: DType, x: Value<'c>) -> Value<'c> {
        let is_single = from != DType::F64;
        if let Some(conversion) = self.float8_conversion(to).filter(|_| is_single) {
            return self.rounded_to_float8s(&[x], to, conversion, Overflow::Saturates)[0];
        }
        // An f64 has all numbers of every format.
        if to == DType::F64 {
            let wide = self.cast(from, to, x);
            return convert::within(self, wide.into_float_value(), to).into();
        }
        self.cast(from, to, convert::within(self, x.into_float_value(), to).into())
    }

    /// Op `bitcast`.
    pub(crate) fn bitcast(&self, from: DType, to: DType, x: Value<'c>) -> Value<'c> {
        let bits = match self.value_to_storage(x, from) {
            Value::FloatValue(x) => self.bits(x),
            bits => bits.into_int_value(),
        };
        match self.storage_type(to) {
            BasicTypeEnum::FloatType(ty) => self.float_of_bits(bits, ty).into(),
            _ => self.value_from_storage(bits.into(), to),
        }
    }

    /// Op `cast`.
    pub(crate) fn cast(&self, from: DType, to: DType, x: Value<'c>) -> Value<'c> {
        match x {
            _ if from == to => x,
            Value::FloatValue(x) if to == DType::Bool => {
                self.fcmp(FloatPredicate::UNE, x, x.get_type().const_zero()).into()
            }
            Value::FloatValue(x) if to.is_float() => convert::float_to_float(self, x, to).into(),
            Value::FloatValue(x) => convert::float_to_int(self, x, to).into(),
            _ => {
                let x = x.into_int_value();
                if to == DType::Bool {
                    self.icmp(IntPredicate::NE, x, x.get_type().const_zero()).into()
                } else if to.is_float() {
                    convert::int_to_float(self, x, from.is_signed(), to).into()
                } else {
                    self.resize(x, to.bits(), from.is_signed()).into()
                }
            }
        }
    }
}
