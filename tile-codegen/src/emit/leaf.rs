//! Leaf ops on scalar LLVM values, the same on every target.
//!
//! A value in a register has its **compute type**: `bool` is i1, integers are themselves, `f16` and `bf16`
//! are an f32 that the format represents exactly, f32 and f64 are themselves. Every op on f16 and bf16
//! computes in f32 and rounds to the format, which for `+ - * / sqrt` is the correctly rounded result
//! (24 ≥ 2·11 + 2 bits: Figueroa, "When is double rounding innocuous?"). In memory a value has its
//! **storage type**: `bool` is i8, f16 and bf16 are i16.

use super::ir::{Ir, Value};
use super::{convert, fmod, math};
use inkwell::types::{BasicTypeEnum, FloatType};
use inkwell::values::{FloatValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tile_ir::dim::Atom;
use tile_ir::ops::{BinaryOp, Classification, Literal, Predicate, UnaryOp};
use tile_ir::{DType, Dim};

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
            DType::F16 | DType::BF16 => self.int_type(16).into(),
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
            DType::F16 => convert::f16_from_bits(self, stored.into_int_value()).into(),
            DType::BF16 => convert::bf16_from_bits(self, stored.into_int_value()).into(),
            _ => stored,
        }
    }

    /// A value in its compute type, as it is kept in memory.
    pub(crate) fn value_to_storage(&self, value: Value<'c>, dtype: DType) -> Value<'c> {
        match dtype {
            DType::Bool => self.resize(value.into_int_value(), 8, false).into(),
            DType::F16 => convert::f16_to_bits(self, value.into_float_value()).into(),
            DType::BF16 => convert::bf16_to_bits(self, value.into_float_value()).into(),
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
        match dtype {
            DType::F16 => convert::round_f16(self, value),
            DType::BF16 => convert::round_bf16(self, value),
            _ => value,
        }
    }

    /// Op `unary`.
    pub(crate) fn unary(&self, op: UnaryOp, dtype: DType, x: Value<'c>) -> Value<'c> {
        match x {
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
                let one = self.resize(positive, x.get_type().get_bit_width(), false);
                self.or(self.ashr(x, self.top_bit(x)), one)
            }
            _ => unreachable!("verified: `{}` has float operands", op.name()),
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
            UnaryOp::Rsqrt => self.fdiv(one, self.float_intrinsic("llvm.sqrt", &[x])),
            UnaryOp::Recip => self.fdiv(one, x),
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
            UnaryOp::Erf => math::erf(self, x),
            UnaryOp::Sigmoid => math::sigmoid(self, x),
            UnaryOp::Silu => math::silu(self, x),
            UnaryOp::Gelu => math::gelu(self, x),
            UnaryOp::Floor => self.float_intrinsic("llvm.floor", &[x]),
            UnaryOp::Ceil => self.float_intrinsic("llvm.ceil", &[x]),
            UnaryOp::Trunc => self.float_intrinsic("llvm.trunc", &[x]),
            UnaryOp::Round => self.round_half_away(x),
            UnaryOp::RoundTiesEven => self.float_intrinsic("llvm.roundeven", &[x]),
            UnaryOp::Not => unreachable!("verified: `not` has integer operands"),
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
                self.round_to(self.float_binary(op, a, b), dtype).into()
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
            BinaryOp::Min => self.extremum(a, b, false, true),
            BinaryOp::Max => self.extremum(a, b, true, true),
            BinaryOp::Minimum => self.extremum(a, b, false, false),
            BinaryOp::Maximum => self.extremum(a, b, true, false),
            BinaryOp::Powf => math::powf(self, a, b),
            BinaryOp::Atan2 => math::atan2(self, a, b),
            BinaryOp::CopySign => self.float_intrinsic("llvm.copysign", &[a, b]),
            BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSub => unreachable!("verified: `{}` has integer operands", op.name()),
        }
    }

    /// The larger or smaller operand with −0 < +0. Of equal operands only zeros differ in their bits, and
    /// there `and` of the bits is +0, `or` is −0.
    fn extremum(
        &self,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
        larger: bool,
        ignore_nan: bool,
    ) -> FloatValue<'c> {
        let (predicate, join): (_, fn(&Self, IntValue<'c>, IntValue<'c>) -> IntValue<'c>) =
            if larger { (FloatPredicate::OGT, Self::and) } else { (FloatPredicate::OLT, Self::or) };
        let equal = self.float_of_bits(join(self, self.bits(a), self.bits(b)), a.get_type());
        let ordered = self.select_float(self.fcmp(predicate, a, b), a, b);
        let ordered = self.select_float(self.fcmp(FloatPredicate::OEQ, a, b), equal, ordered);
        let (if_a_nan, if_b_nan) = if ignore_nan { (b, a) } else { (a, b) };
        let with_b = self.select_float(self.is_nan(b), if_b_nan, ordered);
        self.select_float(self.is_nan(a), if_a_nan, with_b)
    }

    fn int_binary(&self, op: BinaryOp, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
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
            BinaryOp::SaturatingAdd if signed => self.int_intrinsic("llvm.sadd.sat", &[a, b]),
            BinaryOp::SaturatingAdd => self.int_intrinsic("llvm.uadd.sat", &[a, b]),
            BinaryOp::SaturatingSub if signed => self.int_intrinsic("llvm.ssub.sat", &[a, b]),
            BinaryOp::SaturatingSub => self.int_intrinsic("llvm.usub.sat", &[a, b]),
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::CopySign | BinaryOp::Powf | BinaryOp::Atan2 => {
                unreachable!("verified: `{}` has float operands", op.name())
            }
        }
    }

    /// Widths are powers of two, so the amount modulo the width is a mask.
    fn shift_amount(&self, amount: IntValue<'c>) -> IntValue<'c> {
        let mask = u64::from(amount.get_type().get_bit_width() - 1);
        self.and(amount, amount.get_type().const_int(mask, false))
    }

    /// Division defined everywhere: `x / 0 = 0`, `x % 0 = x`, `MIN / −1 = MIN`, `MIN % −1 = 0`. LLVM's own
    /// is undefined there, so it divides by 1 instead and the result is chosen afterwards.
    fn total_division(&self, op: BinaryOp, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        let ty = a.get_type();
        let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
        let by_zero = self.icmp(IntPredicate::EQ, b, zero);
        let minus_one = self.icmp(IntPredicate::EQ, b, ty.const_all_ones());
        let safe = if signed { self.or(by_zero, minus_one) } else { by_zero };
        let divisor = self.select_int(safe, one, b);
        let quotient = op == BinaryOp::Div;
        let result = match (quotient, signed) {
            (true, true) => self.sdiv(a, divisor),
            (true, false) => self.udiv(a, divisor),
            (false, true) => self.srem(a, divisor),
            (false, false) => self.urem(a, divisor),
        };
        let result =
            if signed && quotient { self.select_int(minus_one, self.sub(zero, a), result) } else { result };
        self.select_int(by_zero, if quotient { zero } else { a }, result)
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

    /// The value of an extent expression as an i64. As in the evaluator, division by zero and a value below
    /// zero give 0, and division rounds down.
    pub(crate) fn dim(&self, dim: &Dim, size: &dyn Fn(&str) -> IntValue<'c>) -> IntValue<'c> {
        let value = self.signed_dim(dim, size);
        if dim.is_natural() {
            return value;
        }
        let zero = self.i64(0);
        self.select_int(self.icmp(IntPredicate::SGT, value, zero), value, zero)
    }

    /// [`Self::dim`] of what may be negative, such as a stride.
    pub(crate) fn signed_dim(&self, dim: &Dim, size: &dyn Fn(&str) -> IntValue<'c>) -> IntValue<'c> {
        let terms = dim.terms().map(|(factors, coefficient)| {
            let constant = (coefficient != 1 || factors.is_empty()).then(|| self.i64(coefficient));
            let factors = factors.iter().map(|atom| self.atom(atom, size));
            let product = constant.into_iter().chain(factors).reduce(|a, b| self.mul(a, b));
            product.expect("a term has a coefficient or a factor")
        });
        terms.reduce(|a, b| self.add(a, b)).unwrap_or_else(|| self.i64(0))
    }

    fn atom(&self, atom: &Atom, size: &dyn Fn(&str) -> IntValue<'c>) -> IntValue<'c> {
        let divide = |a: &Dim, b: &Dim| self.euclid(a, b, size);
        match atom {
            Atom::Size(name) => size(name),
            Atom::Param(name) => unreachable!("an instance binds the parameter {name}"),
            Atom::FloorDiv(a, b) => divide(a, b).0,
            Atom::Rem(a, b) => divide(a, b).1,
            Atom::CeilDiv(a, b) => {
                let (quotient, rest) = divide(a, b);
                let inexact = self.icmp(IntPredicate::NE, rest, self.i64(0));
                self.add(quotient, self.resize(inexact, 64, false))
            }
        }
    }

    /// Quotient and remainder, the remainder not negative; both 0 where the divisor is 0.
    fn euclid(&self, a: &Dim, b: &Dim, size: &dyn Fn(&str) -> IntValue<'c>) -> (IntValue<'c>, IntValue<'c>) {
        let signed = !(a.is_natural() && b.is_natural());
        let by_constant = b.as_const().is_some_and(|b| b > 0);
        let (a, b) = (self.signed_dim(a, size), self.signed_dim(b, size));
        if by_constant && !signed {
            return (self.udiv(a, b), self.urem(a, b));
        }
        let zero = self.i64(0);
        let quotient = self.int_binary(BinaryOp::Div, signed, a, b);
        let rest = self.sub(a, self.mul(quotient, b));
        let rest = self.select_int(self.icmp(IntPredicate::EQ, b, zero), zero, rest);
        if !signed {
            return (quotient, rest);
        }
        let below = self.icmp(IntPredicate::SLT, rest, zero);
        let negative = self.icmp(IntPredicate::SLT, b, zero);
        let step = self.select_int(negative, self.i64(-1), self.i64(1));
        let (lower, raised) = (self.sub(quotient, step), self.add(rest, self.mul(step, b)));
        (self.select_int(below, lower, quotient), self.select_int(below, raised, rest))
    }
}
