//! The table of leaf ops: elementwise arithmetic. Ops that answer a question are in [`super::compare`].
//!
//! One entry holds everything target-free about an op: name, meaning, the element classes that it accepts
//! and its value on one element. Integers are evaluated in `i128` and wrapped to the format; floats in
//! `f64` and rounded once, which is exact rounding for `+ - * / % sqrt` of f16, bf16 and f32.
//! Lowering is an exhaustive `match` in each emitter, so a new entry can't be forgotten there.

use super::{philox, special};
use crate::dtype::{Class, DType};

/// Which element classes an op accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Integers and floats.
    Number,
    /// Integers, floats and powers of two.
    NumberOrScale,
    /// Signed integers and floats.
    SignedNumber,
    /// Floats only.
    Float,
    /// f32 only.
    F32,
    /// Integers only.
    Int,
    /// Integers and `bool`.
    IntOrBool,
    /// `u64` only.
    U64,
    /// `bool` only.
    Bool,
    /// Every format.
    Any,
}

impl Domain {
    /// Whether elements of this format are accepted.
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            Domain::Number => dtype.is_number(),
            Domain::NumberOrScale => dtype.class() != Class::Bool,
            Domain::SignedNumber => matches!(dtype.class(), Class::Signed | Class::Float),
            Domain::Float => dtype.class() == Class::Float,
            Domain::F32 => dtype == DType::F32,
            Domain::Int => dtype.is_int(),
            Domain::IntOrBool => !dtype.is_float(),
            Domain::U64 => dtype == DType::U64,
            Domain::Bool => dtype.class() == Class::Bool,
            Domain::Any => true,
        }
    }

    /// What to call the accepted formats in a message.
    pub fn describe(self) -> &'static str {
        match self {
            Domain::Number => "an integer or float",
            Domain::NumberOrScale => "an integer, float or scale",
            Domain::SignedNumber => "a signed integer or float",
            Domain::Float => "a float",
            Domain::F32 => "f32",
            Domain::Int => "an integer",
            Domain::IntOrBool => "an integer or bool",
            Domain::U64 => "u64",
            Domain::Bool => "bool",
            Domain::Any => "any element type",
        }
    }
}

macro_rules! leaf_ops {
    (
        $(#[$meta:meta])* $enum:ident,
        int: $int_ty:ty, float: $float_ty:ty;
        $($variant:ident $name:literal $domain:ident, int: $int:expr, float: $float:expr, $doc:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $(#[doc = $doc] $variant,)* }

        impl $enum {
            /// Every entry, in table order.
            pub const ALL: &[$enum] = &[$($enum::$variant,)*];

            /// The name in IR text, and of the method that a kernel calls.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            /// The entry with this name.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.iter().copied().find(|op| op.name() == name)
            }

            /// The element classes that it accepts.
            pub const fn domain(self) -> Domain {
                match self { $($enum::$variant => Domain::$domain,)* }
            }

            /// The meaning, in a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $($enum::$variant => $doc,)* }
            }

            /// The value on integers (and `bool` as 0 and 1), before wrapping to the format.
            /// Called only on formats that [`Self::domain`] accepts.
            pub fn int(self) -> $int_ty {
                match self { $($enum::$variant => $int,)* }
            }

            /// The value on floats, before rounding to the format.
            /// Called only on formats that [`Self::domain`] accepts.
            pub fn float(self) -> $float_ty {
                match self { $($enum::$variant => $float,)* }
            }
        }
    };
}

fn no_int(_: i128, _: DType) -> i128 {
    unreachable!("verified: a float-only op has float operands")
}

fn no_int2(_: i128, _: i128, _: DType) -> i128 {
    unreachable!("verified: a float-only op has float operands")
}

fn no_float(_: f64) -> f64 {
    unreachable!("verified: an integer-only op has integer operands")
}

fn no_float2(_: f64, _: f64) -> f64 {
    unreachable!("verified: an integer-only op has integer operands")
}

leaf_ops! {
    /// An op from one element to one element of the same format.
    /// The integer function also receives the format.
    UnaryOp, int: fn(i128, DType) -> i128, float: fn(f64) -> f64;
    Neg "neg" SignedNumber, int: |x, _| -x, float: |x| -x, "Negation; the smallest integer wraps to itself.";
    Not "not" IntOrBool, int: |x, dtype| if dtype == DType::Bool { 1 - x } else { !x }, float: no_float, "Bitwise complement; logical for bool.";
    Abs "abs" SignedNumber, int: |x, _| x.abs(), float: f64::abs, "Absolute value; the smallest integer wraps to itself.";
    Exp "exp" Float, int: no_int, float: f64::exp, "eˣ, within 2 ulp.";
    Exp2 "exp2" Float, int: no_int, float: f64::exp2, "2ˣ, within 2 ulp; on GPUs a result of f32 below the smallest normal number may be 0.";
    Log "log" Float, int: no_int, float: f64::ln, "Natural logarithm, within 2 ulp; NaN below zero, −∞ at zero.";
    Log2 "log2" Float, int: no_int, float: f64::log2, "Base-2 logarithm, within 2 ulp; NaN below zero, −∞ at zero.";
    Log10 "log10" Float, int: no_int, float: f64::log10, "Base-10 logarithm, within 2 ulp; NaN below zero, −∞ at zero.";
    Ln1p "ln_1p" Float, int: no_int, float: f64::ln_1p, "ln(1 + x), within 2 ulp also near zero; NaN below −1, −∞ at −1.";
    Exp10 "exp10" Float, int: no_int, float: |x| 10f64.powf(x), "10ˣ, within 2 ulp.";
    ExpM1 "exp_m1" Float, int: no_int, float: f64::exp_m1, "eˣ − 1, within 2 ulp also near zero.";
    Sqrt "sqrt" Float, int: no_int, float: f64::sqrt, "Square root, correctly rounded; NaN below zero.";
    Rsqrt "rsqrt" Float, int: no_int, float: |x| 1.0 / x.sqrt(), "1/√x, within 2 ulp; ∞ at zero, NaN below.";
    Tanh "tanh" Float, int: no_int, float: f64::tanh, "Hyperbolic tangent, within 4 ulp.";
    Sinh "sinh" Float, int: no_int, float: f64::sinh, "Hyperbolic sine, within 3 ulp.";
    Cosh "cosh" Float, int: no_int, float: f64::cosh, "Hyperbolic cosine, within 3 ulp.";
    Cbrt "cbrt" Float, int: no_int, float: f64::cbrt, "Cube root, of negative numbers too, within 2 ulp.";
    Sin "sin" Float, int: no_int, float: f64::sin, "Sine of radians, within 2 ulp for every number; NaN at ±∞.";
    Cos "cos" Float, int: no_int, float: f64::cos, "Cosine of radians, within 2 ulp for every number; NaN at ±∞.";
    Tan "tan" Float, int: no_int, float: f64::tan, "Tangent of radians, within 3 ulp for every number; NaN at ±∞.";
    Asin "asin" Float, int: no_int, float: f64::asin, "Arcsine, within 3 ulp; NaN outside −1 … 1.";
    Acos "acos" Float, int: no_int, float: f64::acos, "Arccosine, within 3 ulp; NaN outside −1 … 1.";
    Atan "atan" Float, int: no_int, float: f64::atan, "Arctangent, within 3 ulp; ±π/2 at ±∞.";
    Erf "erf" Float, int: no_int, float: special::erf, "Error function, within 2 ulp.";
    Sigmoid "sigmoid" Float, int: no_int, float: special::sigmoid, "1 / (1 + e⁻ˣ), within 3 ulp, without overflow.";
    Silu "silu" Float, int: no_int, float: special::silu, "x·sigmoid(x), within 4 ulp; −0 at −∞.";
    Gelu "gelu" Float, int: no_int, float: special::gelu, "x·Φ(x), exactly (with erf, not tanh), within 5 ulp also in the tail; −0 at −∞.";
    Floor "floor" Float, int: no_int, float: f64::floor, "Largest integer that is not greater.";
    Ceil "ceil" Float, int: no_int, float: f64::ceil, "Smallest integer that is not less.";
    Trunc "trunc" Float, int: no_int, float: f64::trunc, "Integer part: rounded toward zero.";
    Round "round" Float, int: no_int, float: f64::round, "Nearest integer; a tie goes away from zero.";
    RoundTiesEven "round_ties_even" Float, int: no_int, float: f64::round_ties_even, "Nearest integer; a tie goes to the even one.";
    RoundTf32 "round_tf32" F32, int: no_int, float: round_tf32, "Nearest TF32 number: 10 mantissa bits; a tie goes away from zero.";
    CountOnes "count_ones" Int, int: |x, dtype| i128::from(pattern(x, dtype).count_ones()), float: no_float, "Number of bits that are 1.";
    LeadingZeros "leading_zeros" Int, int: |x, dtype| i128::from(pattern(x, dtype).leading_zeros() - (64 - dtype.bits())), float: no_float, "Number of 0 bits above the highest 1; the width at 0.";
    TrailingZeros "trailing_zeros" Int, int: |x, dtype| i128::from(pattern(x, dtype).trailing_zeros().min(dtype.bits())), float: no_float, "Number of 0 bits below the lowest 1; the width at 0.";
    SwapBytes "swap_bytes" Int, int: |x, dtype| i128::from(pattern(x, dtype).swap_bytes() >> (64 - dtype.bits())), float: no_float, "Bytes in the opposite order; one byte stays.";
    ReverseBits "reverse_bits" Int, int: |x, dtype| i128::from(pattern(x, dtype).reverse_bits() >> (64 - dtype.bits())), float: no_float, "Bits in the opposite order.";
    Recip "recip" Float, int: no_int, float: f64::recip, "1/x, correctly rounded; ±∞ at ±0.";
    Signum "signum" SignedNumber, int: |x, _| x.signum(), float: f64::signum, "1 or −1 with the sign of x; NaN stays. Float zeros are signed, so they give 1 and −1; the integer 0 gives 0.";
}

/// The bits of an integer, without sign extension.
fn pattern(x: i128, dtype: DType) -> u64 {
    (x & ((1 << dtype.bits()) - 1)) as u64
}

fn round_tf32(x: f64) -> f64 {
    let bits = (x as f32).to_bits();
    if x.is_nan() { x } else { f64::from(f32::from_bits((bits + 0x1000) & !0x1fff)) }
}

/// `a / b` rounded down, 0 where `b` is 0.
fn div_floor(a: i128, b: i128, dtype: DType) -> i128 {
    let inexact = truncating_rem(a, b, dtype) != 0 && b != 0;
    truncating_div(a, b, dtype) - i128::from(inexact && (a < 0) != (b < 0))
}

/// `a / b` rounded up, 0 where `b` is 0.
fn div_ceil(a: i128, b: i128, dtype: DType) -> i128 {
    let inexact = truncating_rem(a, b, dtype) != 0 && b != 0;
    truncating_div(a, b, dtype) + i128::from(inexact && (a < 0) == (b < 0))
}

/// The remainder that isn't negative; `a` where `b` is 0.
fn rem_euclid(a: i128, b: i128, _: DType) -> i128 {
    if b == 0 { a } else { a.rem_euclid(b) }
}

/// `a / b` truncated, 0 where `b` is 0.
fn truncating_div(a: i128, b: i128, _: DType) -> i128 {
    if b == 0 { 0 } else { a / b }
}

/// The remainder of [`truncating_div`]: `a` where `b` is 0.
fn truncating_rem(a: i128, b: i128, _: DType) -> i128 {
    if b == 0 { a } else { a % b }
}

/// Shift amounts are taken modulo the width, as Rust's `wrapping_shl` does.
fn shift_amount(b: i128, dtype: DType) -> u32 {
    b.rem_euclid(i128::from(dtype.bits())) as u32
}

/// The bits moved up, those that leave at the top coming back below.
fn rotate_left(a: i128, b: i128, dtype: DType) -> i128 {
    let (bits, amount) = (i128::from(pattern(a, dtype)), shift_amount(b, dtype));
    (bits << amount) | (bits >> (dtype.bits() - amount))
}

/// The bits moved down, those that leave at the bottom coming back above.
fn rotate_right(a: i128, b: i128, dtype: DType) -> i128 {
    rotate_left(a, -b, dtype)
}

/// The nearest integer that the format has.
fn saturate(value: i128, dtype: DType) -> i128 {
    let (low, high) = dtype.int_range();
    value.clamp(low, high)
}

/// The product's bits above the format's width.
fn mul_hi(a: i128, b: i128, dtype: DType) -> i128 {
    if dtype.is_signed() {
        (a * b) >> dtype.bits()
    } else {
        ((a as u128 * b as u128) >> dtype.bits()) as i128
    }
}

/// IEEE 754-2019 `maximumNumber`: a NaN operand is ignored, −0 < +0.
fn maximum_number(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else {
        ordered_max(a, b)
    }
}

/// IEEE 754-2019 `maximum`: a NaN operand gives NaN, −0 < +0.
fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { ordered_max(a, b) }
}

fn ordered_max(a: f64, b: f64) -> f64 {
    if a == b {
        if a.is_sign_positive() { a } else { b }
    } else if a > b {
        a
    } else {
        b
    }
}

leaf_ops! {
    /// An op from two elements of one format to one of the same format.
    /// The integer function also receives the format.
    BinaryOp, int: fn(i128, i128, DType) -> i128, float: fn(f64, f64) -> f64;
    Add "add" Number, int: |a, b, _| a + b, float: |a, b| a + b, "Sum; integers wrap.";
    Sub "sub" Number, int: |a, b, _| a - b, float: |a, b| a - b, "Difference; integers wrap.";
    Mul "mul" Number, int: |a, b, _| a.wrapping_mul(b), float: |a, b| a * b, "Product; integers wrap.";
    Div "div" Number, int: truncating_div, float: |a, b| a / b, "Quotient; integers truncate, x / 0 = 0, MIN / −1 = MIN.";
    Rem "rem" Number, int: truncating_rem, float: |a, b| a % b, "Remainder with the dividend's sign; for integers x % 0 = x.";
    Min "min" Number, int: |a, b, _| a.min(b), float: |a, b| -maximum_number(-a, -b), "Smaller operand; a NaN operand is ignored, −0 < +0.";
    Max "max" Number, int: |a, b, _| a.max(b), float: maximum_number, "Larger operand; a NaN operand is ignored, −0 < +0.";
    Minimum "minimum" Float, int: no_int2, float: |a, b| -maximum(-a, -b), "Smaller operand; NaN if either is NaN, −0 < +0.";
    Maximum "maximum" Float, int: no_int2, float: maximum, "Larger operand; NaN if either is NaN, −0 < +0.";
    And "and" IntOrBool, int: |a, b, _| a & b, float: no_float2, "Bitwise and; logical for bool.";
    Or "or" IntOrBool, int: |a, b, _| a | b, float: no_float2, "Bitwise or; logical for bool.";
    Xor "xor" IntOrBool, int: |a, b, _| a ^ b, float: no_float2, "Bitwise exclusive or; logical for bool.";
    Shl "shl" Int, int: |a, b, dtype| a << shift_amount(b, dtype), float: no_float2, "Left shift; the amount is taken modulo the width.";
    CopySign "copysign" Float, int: no_int2, float: f64::copysign, "The magnitude of the first operand with the sign of the second; a NaN's sign too.";
    SaturatingAdd "saturating_add" Int, int: |a, b, dtype| saturate(a + b, dtype), float: no_float2, "Sum, or the format's bound that it exceeds.";
    SaturatingSub "saturating_sub" Int, int: |a, b, dtype| saturate(a - b, dtype), float: no_float2, "Difference, or the format's bound that it exceeds.";
    SaturatingMul "saturating_mul" Int, int: |a, b, dtype| saturate(a.saturating_mul(b), dtype), float: no_float2, "Product, or the format's bound that it exceeds.";
    DivFloor "div_floor" Int, int: div_floor, float: no_float2, "Quotient rounded down; x/0 = 0.";
    DivCeil "div_ceil" Int, int: div_ceil, float: no_float2, "Quotient rounded up; x/0 = 0.";
    RemEuclid "rem_euclid" Int, int: rem_euclid, float: no_float2, "Remainder that is never negative; x rem 0 = x.";
    Powf "powf" Float, int: no_int2, float: f64::powf, "aᵇ, within 2 ulp. Edges as IEEE 754 `pow`: 1 if b is 0 or a is 1; NaN if a is below zero and b not an integer.";
    Atan2 "atan2" Float, int: no_int2, float: f64::atan2, "Angle of the point (b, a) from −π to π, within 3 ulp; the signs of zeros count.";
    Hypot "hypot" Float, int: no_int2, float: f64::hypot, "√(a² + b²), within 2 ulp, without overflow of the squares; ∞ if either is infinite, else NaN if either is NaN.";
    MulHi "mul_hi" Int, int: mul_hi, float: no_float2, "The high half of the product, which has twice the width.";
    Philox "philox" U64, int: |a, b, _| i128::from(philox::philox(a as u64, b as u64)), float: no_float2, "Words 0 and 1 of Philox4x32-10 under the key b, at the counter (a, 0, 0); word 0 is the low half.";
    Shr "shr" Int, int: |a, b, dtype| a >> shift_amount(b, dtype), float: no_float2, "Right shift, arithmetic for signed; the amount is taken modulo the width.";
    RotateLeft "rotate_left" Int, int: rotate_left, float: no_float2, "Bits moved up, those that leave at the top coming back below; the amount is taken modulo the width.";
    RotateRight "rotate_right" Int, int: rotate_right, float: no_float2, "Bits moved down, those that leave at the bottom coming back above; the amount is taken modulo the width.";
}

impl UnaryOp {
    /// The Rust operator, for an op that is one.
    pub const fn operator(self) -> Option<&'static str> {
        match self {
            UnaryOp::Neg => Some("-"),
            UnaryOp::Not => Some("!"),
            _ => None,
        }
    }

    /// Whether a float pipe takes more than an instruction for it.
    pub const fn is_special(self) -> bool {
        use UnaryOp::*;
        let is_of_integers = matches!(self.domain(), Domain::Int | Domain::IntOrBool);
        !is_of_integers
            && !matches!(self, Neg | Abs | Floor | Ceil | Trunc | Round | RoundTiesEven | RoundTf32 | Signum)
    }
}

impl BinaryOp {
    /// Whether it is a function that takes many instructions, and not an operation.
    pub const fn is_mathematical(self) -> bool {
        matches!(self, BinaryOp::Powf | BinaryOp::Atan2 | BinaryOp::Hypot)
    }

    /// The Rust operator, for an op that is one.
    pub const fn operator(self) -> Option<&'static str> {
        match self {
            BinaryOp::Add => Some("+"),
            BinaryOp::Sub => Some("-"),
            BinaryOp::Mul => Some("*"),
            BinaryOp::Div => Some("/"),
            BinaryOp::Rem => Some("%"),
            BinaryOp::And => Some("&"),
            BinaryOp::Or => Some("|"),
            BinaryOp::Xor => Some("^"),
            BinaryOp::Shl => Some("<<"),
            BinaryOp::Shr => Some(">>"),
            _ => None,
        }
    }

    /// The op that a `wrapping_…` method of Rust's integers names: an operator, for integers wrap.
    pub fn wrapping(name: &str) -> Option<BinaryOp> {
        let name = name.strip_prefix("wrapping_")?;
        BinaryOp::from_name(name).filter(|op| op.operator().is_some() && op.domain().accepts(DType::I32))
    }

    /// Whether the second operand says by how many bits the first is moved, and so may be an integer of any type.
    pub const fn moves_bits(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::RotateLeft | BinaryOp::RotateRight)
    }

    /// Whether the operands may be swapped.
    pub fn is_commutative(self) -> bool {
        use BinaryOp::*;
        matches!(
            self,
            Add | Mul
                | Min
                | Max
                | Minimum
                | Maximum
                | Hypot
                | And
                | Or
                | Xor
                | SaturatingAdd
                | SaturatingMul
                | MulHi
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_division_is_total_and_truncates() {
        let (div, rem) = (BinaryOp::Div.int(), BinaryOp::Rem.int());
        for (a, b, q, r) in [(-7, 2, -3, -1), (7, -2, -3, 1), (7, 0, 0, 7), (-128, -1, 128, 0)] {
            assert_eq!((div(a, b, DType::I8), rem(a, b, DType::I8)), (q, r), "{a} / {b}");
        }
    }

    #[test]
    fn max_ignores_nan_and_maximum_propagates_it() {
        assert_eq!(BinaryOp::Max.float()(f64::NAN, 1.0), 1.0);
        assert!(BinaryOp::Maximum.float()(f64::NAN, 1.0).is_nan());
        assert!(BinaryOp::Max.float()(-0.0, 0.0).is_sign_positive());
        assert!(BinaryOp::Min.float()(0.0, -0.0).is_sign_negative());
        assert_eq!(BinaryOp::Minimum.float()(2.0, 1.0), 1.0);
    }

    #[test]
    fn names_are_unique_within_a_table() {
        for op in UnaryOp::ALL {
            assert_eq!(UnaryOp::from_name(op.name()), Some(*op));
        }
        for op in BinaryOp::ALL {
            assert_eq!(BinaryOp::from_name(op.name()), Some(*op));
        }
    }

    #[test]
    fn divisions_round_as_they_say() {
        let all = |a, b| {
            let ops =
                [BinaryOp::Div, BinaryOp::DivFloor, BinaryOp::DivCeil, BinaryOp::Rem, BinaryOp::RemEuclid];
            ops.map(|op| op.int()(a, b, DType::I8))
        };
        assert_eq!(all(-7, 2), [-3, -4, -3, -1, 1]);
        assert_eq!(all(7, -2), [-3, -4, -3, 1, 1]);
        assert_eq!(all(7, 2), [3, 3, 4, 1, 1]);
        assert_eq!(all(-7, -2), [3, 3, 4, -1, 1]);
        assert_eq!(all(-6, 2), [-3, -3, -3, 0, 0]);
        assert_eq!(all(-5, 0), [0, 0, 0, -5, -5]);
    }

    #[test]
    fn bits_are_counted_in_the_formats_width() {
        let count = |op: UnaryOp, x| op.int()(x, DType::I8);
        let counts =
            |x| [UnaryOp::CountOnes, UnaryOp::LeadingZeros, UnaryOp::TrailingZeros].map(|op| count(op, x));
        assert_eq!(counts(0), [0, 8, 8]);
        assert_eq!(counts(-1), [8, 0, 0]);
        assert_eq!(counts(20), [2, 3, 2]);
        assert_eq!(UnaryOp::LeadingZeros.int()(1, DType::U64), 63);
    }

    #[test]
    fn bits_and_bytes_move_as_those_of_rusts_integers() {
        macro_rules! check {
            ($($dtype:ident $rust:ty;)*) => {$(
                for pattern in [0x0123_4567_89ab_cdef_u64, u64::MAX << 7, 0x8000_0180_7fff_8001] {
                    let x = pattern as $rust;
                    let wrapped = |value: i128| value as $rust;
                    let unary = |op: UnaryOp| wrapped(op.int()(x.into(), DType::$dtype));
                    assert_eq!(unary(UnaryOp::SwapBytes), x.swap_bytes(), "{x}");
                    assert_eq!(unary(UnaryOp::ReverseBits), x.reverse_bits(), "{x}");
                    for by in -70i8..=70 {
                        let amount = i32::from(by).rem_euclid(<$rust>::BITS as i32) as u32;
                        let binary = |op: BinaryOp| wrapped(op.int()(x.into(), by.into(), DType::$dtype));
                        assert_eq!(binary(BinaryOp::RotateLeft), x.rotate_left(amount), "{x} by {by}");
                        assert_eq!(binary(BinaryOp::RotateRight), x.rotate_right(amount), "{x} by {by}");
                    }
                }
            )*};
        }
        check! {
            I8 i8;
            I16 i16;
            I32 i32;
            I64 i64;
            U8 u8;
            U16 u16;
            U32 u32;
            U64 u64;
        }
    }

    #[test]
    fn tf32_keeps_ten_bits() {
        let round = UnaryOp::RoundTf32.float();
        let (half_unit, unit) = (2f64.powi(-11), 2f64.powi(-10));
        assert_eq!((round(1.0 + half_unit), round(-1.0 - half_unit)), (1.0 + unit, -1.0 - unit));
        assert_eq!(round(1.0 + half_unit / 2.0), 1.0);
        assert_eq!((round(f64::INFINITY), round(-0.0).is_sign_negative()), (f64::INFINITY, true));
        assert!(round(f64::NAN).is_nan());
    }

    #[test]
    fn high_halves_are_those_of_a_product_of_twice_the_width() {
        let high = BinaryOp::MulHi.int();
        let cases = [(DType::U32, 0xffff_ffff, 0xffff_ffff, 0xffff_fffe), (DType::U8, 255, 255, 254)];
        let signed = [(DType::I8, -128, -128, 64), (DType::I8, -1, 1, -1), (DType::I32, 1 << 30, 8, 2)];
        let most = i128::from(u64::MAX);
        for (dtype, a, b, expected) in
            cases.into_iter().chain(signed).chain([(DType::U64, most, most, most - 1)])
        {
            assert_eq!(high(a, b, dtype), expected, "{dtype} {a} {b}");
        }
    }

    #[test]
    fn saturation_ends_at_the_formats_bounds() {
        let (add, sub) = (BinaryOp::SaturatingAdd.int(), BinaryOp::SaturatingSub.int());
        assert_eq!((add(127, 1, DType::I8), sub(-128, 1, DType::I8)), (127, -128));
        assert_eq!((add(250, 10, DType::U8), sub(3, 4, DType::U8)), (255, 0));
        let most = i128::from(u64::MAX);
        assert_eq!((add(most, most, DType::U64), add(3, 4, DType::I64)), (most, 7));
    }
}
