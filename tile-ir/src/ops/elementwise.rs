//! The tables of leaf ops: elementwise arithmetic. Ops that answer a question are in [`super::compare`].
//!
//! One row holds everything target-free about an op: name, operator, the element classes that it accepts, its value on one
//! element, its error and its meaning. Integers are evaluated in `i128` and wrapped to the format; floats in `f64` and
//! rounded once, which is exact rounding for `+ - * / % sqrt` of f16, bf16 and f32.
//! A table is a macro that gives its rows to another one, so that the functions of kernels and their tests are made of the
//! same rows. Lowering is an exhaustive `match` in each emitter, so a new row can't be forgotten there.

use super::element::*;
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

/// What a row says of an op behind its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The operands may be swapped.
    Commutative,
    /// The second operand says by how many bits the first is moved, and so may be an integer of any type.
    MovesBits,
    /// [`Cost::OneInstruction`].
    OneInstruction,
    /// [`Cost::Division`].
    Divides,
    /// [`Cost::Rounds`].
    Rounds,
}

/// What an element of an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// No more than an instruction of the pipe for its format.
    OneInstruction,
    /// About what a division or a root takes.
    Division,
    /// Rounds of integer arithmetic.
    Rounds,
    /// A function, made of many instructions: what a row says nothing else of.
    Function,
}

impl Cost {
    /// What a row with these properties says.
    fn said_by(properties: &[Property]) -> Cost {
        let said = properties.iter().find_map(|property| match property {
            Property::OneInstruction => Some(Cost::OneInstruction),
            Property::Divides => Some(Cost::Division),
            Property::Rounds => Some(Cost::Rounds),
            Property::Commutative | Property::MovesBits => None,
        });
        said.unwrap_or(Cost::Function)
    }
}

/// Gives the rows of [`ops::UnaryOp`](crate::ops::UnaryOp) to the macro of this name:
/// `Variant name "operator" of Domain [Property], int: value, float: value, "meaning, within " ulps " ulp.";`. Only Rust's
/// operators have one, and only results that aren't correctly rounded an error. What else is so is one of the
/// [properties](crate::ops::elementwise::Property), such as [what it takes](crate::ops::elementwise::Cost).
#[doc(hidden)]
#[macro_export]
macro_rules! unary_ops {
    ($with:ident) => {
        $with! {
            Neg neg "-" of SignedNumber [OneInstruction], int: |x, _| -x, float: |x| -x, "Negation; the smallest integer wraps to itself.";
            Not not "!" of IntOrBool [OneInstruction], int: |x, dtype| if dtype == DType::Bool { 1 - x } else { !x }, float: no_float, "Bitwise complement; logical for bool.";
            Abs abs of SignedNumber [OneInstruction], int: |x, _| x.abs(), float: f64::abs, "Absolute value; the smallest integer wraps to itself.";
            Exp exp of Float, int: no_int, float: f64::exp, "eˣ, within " 2 " ulp.";
            Exp2 exp2 of Float, int: no_int, float: f64::exp2, "2ˣ, within " 2 " ulp; on GPUs a result of f32 or bf16 below the smallest normal number may be 0.";
            Log log of Float, int: no_int, float: f64::ln, "Natural logarithm, within " 2 " ulp; NaN below zero, −∞ at zero.";
            Log2 log2 of Float, int: no_int, float: f64::log2, "Base-2 logarithm, within " 2 " ulp; NaN below zero, −∞ at zero.";
            Log10 log10 of Float, int: no_int, float: f64::log10, "Base-10 logarithm, within " 2 " ulp; NaN below zero, −∞ at zero.";
            Ln1p ln_1p of Float, int: no_int, float: f64::ln_1p, "ln(1 + x), within " 2 " ulp also near zero; NaN below −1, −∞ at −1.";
            Exp10 exp10 of Float, int: no_int, float: |x| 10f64.powf(x), "10ˣ, within " 2 " ulp.";
            ExpM1 exp_m1 of Float, int: no_int, float: f64::exp_m1, "eˣ − 1, within " 2 " ulp also near zero.";
            Sqrt sqrt of Float [Divides], int: no_int, float: f64::sqrt, "Square root, correctly rounded; NaN below zero.";
            Rsqrt rsqrt of Float [Divides], int: no_int, float: |x| 1.0 / x.sqrt(), "1/√x, within " 2 " ulp; ±∞ at ±0, NaN below.";
            Tanh tanh of Float, int: no_int, float: f64::tanh, "Hyperbolic tangent, within " 4 " ulp.";
            Sinh sinh of Float, int: no_int, float: f64::sinh, "Hyperbolic sine, within " 3 " ulp.";
            Cosh cosh of Float, int: no_int, float: f64::cosh, "Hyperbolic cosine, within " 3 " ulp.";
            Cbrt cbrt of Float, int: no_int, float: f64::cbrt, "Cube root, of negative numbers too, within " 2 " ulp.";
            Sin sin of Float, int: no_int, float: f64::sin, "Sine of radians, within " 2 " ulp for every number; NaN at ±∞.";
            Cos cos of Float, int: no_int, float: f64::cos, "Cosine of radians, within " 2 " ulp for every number; NaN at ±∞.";
            Tan tan of Float, int: no_int, float: f64::tan, "Tangent of radians, within " 3 " ulp for every number; NaN at ±∞.";
            Asin asin of Float, int: no_int, float: f64::asin, "Arcsine, within " 3 " ulp; NaN outside −1 … 1.";
            Acos acos of Float, int: no_int, float: f64::acos, "Arccosine, within " 3 " ulp; NaN outside −1 … 1.";
            Atan atan of Float, int: no_int, float: f64::atan, "Arctangent, within " 3 " ulp; ±π/2 at ±∞.";
            Asinh asinh of Float, int: no_int, float: special::asinh, "Inverse hyperbolic sine, within " 3 " ulp, without overflow of the square.";
            Acosh acosh of Float, int: no_int, float: special::acosh, "Inverse hyperbolic cosine, within " 3 " ulp also near one; NaN below one.";
            Atanh atanh of Float, int: no_int, float: special::atanh, "Inverse hyperbolic tangent, within " 3 " ulp; ±∞ at ±1, NaN beyond.";
            Erf erf of Float, int: no_int, float: special::erf, "Error function, within " 2 " ulp.";
            Erfc erfc of Float, int: no_int, float: special::erfc, "1 − erf(x), within " 5 " ulp also in the tail.";
            Sigmoid sigmoid of Float, int: no_int, float: special::sigmoid, "1 / (1 + e⁻ˣ), within " 3 " ulp, without overflow.";
            Silu silu of Float, int: no_int, float: special::silu, "x·sigmoid(x), within " 4 " ulp; −0 at −∞.";
            Gelu gelu of Float, int: no_int, float: special::gelu, "x·Φ(x), exactly (with erf, not tanh), within " 5 " ulp also in the tail; −0 at −∞.";
            Floor floor of Float [OneInstruction], int: no_int, float: f64::floor, "Largest integer that is not greater.";
            Ceil ceil of Float [OneInstruction], int: no_int, float: f64::ceil, "Smallest integer that is not less.";
            Trunc trunc of Float [OneInstruction], int: no_int, float: f64::trunc, "Integer part: rounded toward zero.";
            Round round of Float [OneInstruction], int: no_int, float: f64::round, "Nearest integer; a tie goes away from zero.";
            RoundTiesEven round_ties_even of Float [OneInstruction], int: no_int, float: f64::round_ties_even, "Nearest integer; a tie goes to the even one.";
            RoundTf32 round_tf32 of F32 [OneInstruction], int: no_int, float: round_tf32, "Nearest TF32 number, with 10 mantissa bits, of an f32; a tie goes away from zero.";
            CountOnes count_ones of Int [OneInstruction], int: |x, dtype| i128::from(pattern(x, dtype).count_ones()), float: no_float, "Number of bits that are 1.";
            LeadingZeros leading_zeros of Int [OneInstruction], int: |x, dtype| i128::from(pattern(x, dtype).leading_zeros() - (64 - dtype.bits())), float: no_float, "Number of 0 bits above the highest 1; the width at 0.";
            TrailingZeros trailing_zeros of Int [OneInstruction], int: |x, dtype| i128::from(pattern(x, dtype).trailing_zeros().min(dtype.bits())), float: no_float, "Number of 0 bits below the lowest 1; the width at 0.";
            SwapBytes swap_bytes of Int [OneInstruction], int: |x, dtype| i128::from(pattern(x, dtype).swap_bytes() >> (64 - dtype.bits())), float: no_float, "Bytes in the opposite order; one byte stays.";
            ReverseBits reverse_bits of Int [OneInstruction], int: |x, dtype| i128::from(pattern(x, dtype).reverse_bits() >> (64 - dtype.bits())), float: no_float, "Bits in the opposite order.";
            Recip recip of Float [Divides], int: no_int, float: f64::recip, "1/x, correctly rounded; ±∞ at ±0.";
            Signum signum of SignedNumber [OneInstruction], int: |x, _| x.signum(), float: f64::signum, "1 or −1 with the sign of x; NaN stays. Float zeros are signed, so they give 1 and −1; the integer 0 gives 0.";
        }
    };
}

/// Gives the rows of [`ops::BinaryOp`](crate::ops::BinaryOp) to the macro of this name. They are those of
/// [`unary_ops!`](crate::unary_ops).
#[doc(hidden)]
#[macro_export]
macro_rules! binary_ops {
    ($with:ident) => {
        $with! {
            Add add "+" of Number [Commutative OneInstruction], int: |a, b, _| a + b, float: |a, b| a + b, "Sum; integers wrap.";
            Sub sub "-" of Number [OneInstruction], int: |a, b, _| a - b, float: |a, b| a - b, "Difference; integers wrap.";
            Mul mul "*" of Number [Commutative OneInstruction], int: |a, b, _| a.wrapping_mul(b), float: |a, b| a * b, "Product; integers wrap.";
            Div div "/" of Number [Divides], int: truncating_div, float: |a, b| a / b, "Quotient; integers truncate, x / 0 = 0, MIN / −1 = MIN.";
            Rem rem "%" of Number [Divides], int: truncating_rem, float: |a, b| a % b, "Remainder with the dividend's sign; for integers x % 0 = x.";
            Min min of Number [Commutative OneInstruction], int: |a, b, _| a.min(b), float: |a, b| -maximum_number(-a, -b), "Smaller operand; a NaN operand is ignored, −0 < +0.";
            Max max of Number [Commutative OneInstruction], int: |a, b, _| a.max(b), float: maximum_number, "Larger operand; a NaN operand is ignored, −0 < +0.";
            Minimum minimum of Float [Commutative OneInstruction], int: no_int2, float: |a, b| -maximum(-a, -b), "Smaller operand; NaN if either is NaN, −0 < +0.";
            Maximum maximum of Float [Commutative OneInstruction], int: no_int2, float: maximum, "Larger operand; NaN if either is NaN, −0 < +0.";
            And and "&" of IntOrBool [Commutative OneInstruction], int: |a, b, _| a & b, float: no_float2, "Bitwise and; logical for bool.";
            Or or "|" of IntOrBool [Commutative OneInstruction], int: |a, b, _| a | b, float: no_float2, "Bitwise or; logical for bool.";
            Xor xor "^" of IntOrBool [Commutative OneInstruction], int: |a, b, _| a ^ b, float: no_float2, "Bitwise exclusive or; logical for bool.";
            Shl shl "<<" of Int [MovesBits OneInstruction], int: |a, b, dtype| a << shift_amount(b, dtype), float: no_float2, "Left shift; the amount is taken modulo the width.";
            CopySign copysign of Float [OneInstruction], int: no_int2, float: f64::copysign, "The magnitude of the first operand with the sign of the second; a NaN's sign too, but for 8-bit floats on GPUs that convert these themselves.";
            SaturatingAdd saturating_add of Int [Commutative OneInstruction], int: |a, b, dtype| saturate(a + b, dtype), float: no_float2, "Sum, or the format's bound that it exceeds.";
            SaturatingSub saturating_sub of Int [OneInstruction], int: |a, b, dtype| saturate(a - b, dtype), float: no_float2, "Difference, or the format's bound that it exceeds.";
            SaturatingMul saturating_mul of Int [Commutative OneInstruction], int: |a, b, dtype| saturate(a.saturating_mul(b), dtype), float: no_float2, "Product, or the format's bound that it exceeds.";
            DivFloor div_floor of Int [Divides], int: div_floor, float: no_float2, "Quotient rounded down; x/0 = 0.";
            DivCeil div_ceil of Int [Divides], int: div_ceil, float: no_float2, "Quotient rounded up; x/0 = 0.";
            RemEuclid rem_euclid of Int [Divides], int: rem_euclid, float: no_float2, "Remainder that is never negative; x rem 0 = x.";
            Powf powf of Float, int: no_int2, float: powf, "aᵇ, within " 2 " ulp. Edges as IEEE 754 `pow`: 1 if b is 0 or a is 1; NaN if a is below zero and b not an integer.";
            Atan2 atan2 of Float, int: no_int2, float: f64::atan2, "Angle of the point (b, a) from −π to π, within " 3 " ulp; the signs of zeros count.";
            Hypot hypot of Float [Commutative], int: no_int2, float: hypot, "√(a² + b²), within " 2 " ulp, without overflow of the squares; ∞ if either is infinite, else NaN if either is NaN.";
            MulHi mul_hi of Int [Commutative OneInstruction], int: mul_hi, float: no_float2, "The high half of the product, which has twice the width.";
            Philox philox of U64 [Rounds], int: |a, b, _| i128::from(philox::philox(a as u64, b as u64)), float: no_float2, "Words 0 and 1 of Philox4x32-10 (Salmon et al., SC'11) under the key b, at the counter (a, 0, 0); word 0 is the low half.";
            Shr shr ">>" of Int [MovesBits OneInstruction], int: |a, b, dtype| a >> shift_amount(b, dtype), float: no_float2, "Right shift, arithmetic for signed; the amount is taken modulo the width.";
            RotateLeft rotate_left of Int [MovesBits OneInstruction], int: rotate_left, float: no_float2, "Bits moved up, those that leave at the top coming back below; the amount is taken modulo the width.";
            RotateRight rotate_right of Int [MovesBits OneInstruction], int: rotate_right, float: no_float2, "Bits moved down, those that leave at the bottom coming back above; the amount is taken modulo the width.";
        }
    };
}

macro_rules! leaf_ops {
    (
        $(#[$meta:meta])* $enum:ident,
        int: $int_ty:ty, float: $float_ty:ty;
        $($variant:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
            int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $(#[doc = concat!($doc $(, $ulps, $further)?)] $variant,)* }

        impl $enum {
            /// Every entry, in table order.
            pub const ALL: &[$enum] = &[$($enum::$variant,)*];

            /// The name in IR text, and of the method that a kernel calls.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => stringify!($name),)* }
            }

            /// The entry with this name.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.iter().copied().find(|op| op.name() == name)
            }

            /// The Rust operator, for an op that is one.
            pub fn operator(self) -> Option<&'static str> {
                let operator: &[&str] = match self { $($enum::$variant => &[$($operator)?],)* };
                operator.first().copied()
            }

            /// The element classes that it accepts.
            pub const fn domain(self) -> Domain {
                match self { $($enum::$variant => Domain::$domain,)* }
            }

            /// The meaning, in a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $($enum::$variant => concat!($doc $(, $ulps, $further)?),)* }
            }

            /// The largest error on f32, in units in the last place; `None` where results are exact or correctly rounded.
            pub fn ulps(self) -> Option<u32> {
                let ulps: &[u32] = match self { $($enum::$variant => &[$($ulps)?],)* };
                ulps.first().copied()
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

            /// What else the table says of it.
            pub const fn properties(self) -> &'static [Property] {
                match self { $($enum::$variant => &[$($(Property::$property),*)?],)* }
            }

            /// What an element of it takes.
            pub fn cost(self) -> Cost {
                Cost::said_by(self.properties())
            }
        }
    };
}

macro_rules! unary_op {
    ($($rows:tt)*) => { leaf_ops! {
        /// An op from one element to one element of the same format.
        /// The integer function also receives the format.
        UnaryOp, int: fn(i128, DType) -> i128, float: fn(f64) -> f64;
        $($rows)*
    } };
}

macro_rules! binary_op {
    ($($rows:tt)*) => { leaf_ops! {
        /// An op from two elements of one format to one of the same format.
        /// The integer function also receives the format.
        BinaryOp, int: fn(i128, i128, DType) -> i128, float: fn(f64, f64) -> f64;
        $($rows)*
    } };
}

unary_ops!(unary_op);
binary_ops!(binary_op);

impl BinaryOp {
    /// The op that a `wrapping_…` method of Rust's integers names: an operator, for integers wrap.
    pub fn wrapping(name: &str) -> Option<BinaryOp> {
        let name = name.strip_prefix("wrapping_")?;
        BinaryOp::from_name(name).filter(|op| op.operator().is_some() && op.domain().accepts(DType::I32))
    }

    /// Whether the second operand says by how many bits the first is moved, and so may be an integer of any type.
    pub fn moves_bits(self) -> bool {
        self.properties().contains(&Property::MovesBits)
    }

    /// Whether the operands may be swapped.
    pub fn is_commutative(self) -> bool {
        self.properties().contains(&Property::Commutative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_operands_is_said_of_two_and_costs_are_said_once() {
        let unary = UnaryOp::ALL.iter().map(|op| (op.name(), 1, op.properties()));
        let binary = BinaryOp::ALL.iter().map(|op| (op.name(), 2, op.properties()));
        for (name, operands, properties) in unary.chain(binary) {
            let of_operands = [Property::Commutative, Property::MovesBits];
            let (of_two, costs): (Vec<Property>, Vec<Property>) =
                properties.iter().partition(|property| of_operands.contains(property));
            assert!(of_two.is_empty() || operands == 2, "`{name}` has one operand and says {of_two:?}");
            assert!(costs.len() <= 1, "`{name}` says {costs:?}");
        }
    }

    /// Where results change with the order of the operands, they can't be swapped.
    #[test]
    fn what_is_commutative_gives_the_same_of_operands_that_are_swapped() {
        for op in BinaryOp::ALL.iter().filter(|op| op.is_commutative()) {
            for (a, b) in [(3, 5), (-7, 2), (0, 120), (-128, -1)] {
                if op.domain().accepts(DType::I8) {
                    assert_eq!(op.int()(a, b, DType::I8), op.int()(b, a, DType::I8), "{}", op.name());
                }
                if op.domain().accepts(DType::F32) {
                    let [one, other] = [(a, b), (b, a)].map(|(a, b)| op.float()(a as f64, b as f64));
                    assert_eq!(one.to_bits(), other.to_bits(), "{}", op.name());
                }
            }
        }
    }
}
