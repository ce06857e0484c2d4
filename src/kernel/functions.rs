//! Functions of tiles and scalars: the leaf ops that have no operator, and `select`.
//!
//! Every function is also a method of [`Tile`], but `min` and `max`: as methods those names reduce an axis.

use super::compare::{Pair, common_shape};
use super::either::{Shift, ShiftAmount};
use super::scalar::cast;
use super::tile::{scalar, scalar_value};
use super::{Element, Float, Int, Number, Tile};
use tile_ir::ops::{BinaryOp, Classification, UnaryOp};
use tile_runtime::element::Scalar;

/// A float scalar or a tile of floats: what `exp(x)` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a float nor a tile of floats",
    label = "needs floats"
)]
pub trait FloatValue: Sized {
    /// The type of `is_nan(x)`.
    type Mask;

    #[doc(hidden)]
    fn float_function(self, op: UnaryOp) -> Self;

    #[doc(hidden)]
    fn classify(self, classification: Classification) -> Self::Mask;
}

impl<T: Float> FloatValue for T {
    type Mask = bool;

    fn classify(self, classification: Classification) -> bool {
        scalar_value(&scalar(self).classify(classification))
    }

    fn float_function(self, op: UnaryOp) -> T {
        scalar_value(&scalar(self).unary(op))
    }
}

impl<T: Float, const R: usize> FloatValue for Tile<T, R> {
    type Mask = Tile<bool, R>;

    fn classify(self, classification: Classification) -> Tile<bool, R> {
        Tile::hold(self.array().classify(classification))
    }

    fn float_function(self, op: UnaryOp) -> Self {
        Tile::hold(self.array().unary(op))
    }
}

/// A scalar or a tile of signed numbers: what `abs(x)` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a number nor a tile of numbers",
    label = "needs numbers"
)]
pub trait SignedValue: Sized {
    #[doc(hidden)]
    fn signed_function(self, op: UnaryOp) -> Self;
}

impl<T: Number> SignedValue for T {
    fn signed_function(self, op: UnaryOp) -> T {
        scalar_value(&scalar(self).unary(op))
    }
}

impl<T: Number, const R: usize> SignedValue for Tile<T, R> {
    fn signed_function(self, op: UnaryOp) -> Self {
        Tile::hold(self.array().unary(op))
    }
}

/// An integer scalar or a tile of integers: what `count_ones(x)` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an integer nor a tile of integers",
    label = "needs integers"
)]
pub trait IntValue: Sized {
    #[doc(hidden)]
    fn int_function(self, op: UnaryOp) -> Self;
}

impl<T: Int> IntValue for T {
    fn int_function(self, op: UnaryOp) -> T {
        scalar_value(&scalar(self).unary(op))
    }
}

impl<T: Int, const R: usize> IntValue for Tile<T, R> {
    fn int_function(self, op: UnaryOp) -> Self {
        Tile::hold(self.array().unary(op))
    }
}

macro_rules! unary_functions {
    ($table:ident of $element:ty: $($op:ident $name:ident $trait:ident $function:ident $bound:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub fn $name<Value: $trait>(x: Value) -> Value {
                x.$function(UnaryOp::$op)
            }

            impl<T: $bound, const R: usize> Tile<T, R> {
                #[doc = $doc]
                pub fn $name(self) -> Self {
                    self.$function(UnaryOp::$op)
                }
            }
        )*

        #[cfg(test)]
        const $table: &[(UnaryOp, &str, UnaryFunction<$element>, UnaryFunction<$element>)] =
            &[$((UnaryOp::$op, stringify!($name), $name, Tile::$name),)*];
    };
}

#[cfg(test)]
type UnaryFunction<T> = fn(Tile<T, 1>) -> Tile<T, 1>;

unary_functions! {
    UNARY of f32:
    Abs abs SignedValue signed_function Number, "The absolute value; the smallest integer wraps to itself.";
    Exp exp FloatValue float_function Float, "eˣ, within 2 ulp.";
    Exp2 exp2 FloatValue float_function Float, "2ˣ, within 2 ulp.";
    Log log FloatValue float_function Float, "The natural logarithm, within 2 ulp; NaN below zero, −∞ at zero.";
    Log2 log2 FloatValue float_function Float, "The base-2 logarithm, within 2 ulp; NaN below zero, −∞ at zero.";
    Log10 log10 FloatValue float_function Float, "The base-10 logarithm, within 2 ulp; NaN below zero, −∞ at zero.";
    Ln1p ln_1p FloatValue float_function Float, "ln(1 + x), within 2 ulp also near zero; NaN below −1, −∞ at −1.";
    Exp10 exp10 FloatValue float_function Float, "10ˣ, within 2 ulp.";
    ExpM1 exp_m1 FloatValue float_function Float, "eˣ − 1, within 2 ulp also near zero.";
    Sqrt sqrt FloatValue float_function Float, "The square root, correctly rounded; NaN below zero.";
    Rsqrt rsqrt FloatValue float_function Float, "1/√x, within 2 ulp; ∞ at zero, NaN below.";
    Tanh tanh FloatValue float_function Float, "The hyperbolic tangent, within 4 ulp.";
    Sinh sinh FloatValue float_function Float, "The hyperbolic sine, within 3 ulp.";
    Cosh cosh FloatValue float_function Float, "The hyperbolic cosine, within 3 ulp.";
    Cbrt cbrt FloatValue float_function Float, "The cube root, of negative numbers too, within 2 ulp.";
    Sin sin FloatValue float_function Float, "The sine of radians, within 2 ulp for every number; NaN at ±∞.";
    Cos cos FloatValue float_function Float, "The cosine of radians, within 2 ulp for every number; NaN at ±∞.";
    Tan tan FloatValue float_function Float, "The tangent of radians, within 3 ulp for every number; NaN at ±∞.";
    Asin asin FloatValue float_function Float, "The arcsine, within 3 ulp; NaN outside −1 … 1.";
    Acos acos FloatValue float_function Float, "The arccosine, within 3 ulp; NaN outside −1 … 1.";
    Atan atan FloatValue float_function Float, "The arctangent, within 3 ulp; ±π/2 at ±∞.";
    Erf erf FloatValue float_function Float, "The error function, within 2 ulp.";
    Sigmoid sigmoid FloatValue float_function Float, "1 / (1 + e⁻ˣ), within 3 ulp, without overflow.";
    Silu silu FloatValue float_function Float, "x·sigmoid(x), within 4 ulp; −0 at −∞.";
    Gelu gelu FloatValue float_function Float, "x·Φ(x), exactly (with erf, not tanh), within 5 ulp also in the tail; −0 at −∞.";
    Floor floor FloatValue float_function Float, "The largest integer that is not greater.";
    Ceil ceil FloatValue float_function Float, "The smallest integer that is not less.";
    Trunc trunc FloatValue float_function Float, "The integer part: rounded toward zero.";
    Round round FloatValue float_function Float, "The nearest integer; a tie goes away from zero.";
    RoundTiesEven round_ties_even FloatValue float_function Float, "The nearest integer; a tie goes to the even one.";
    Recip recip FloatValue float_function Float, "1/x, correctly rounded; ±∞ at ±0.";
    RoundTf32 round_tf32 FloatValue float_function Float, "The nearest TF32 number: 10 mantissa bits; a tie goes away from zero. Of f32 only.";
    Signum signum SignedValue signed_function Number, "1 or −1 with the sign of x; NaN stays. Float zeros are signed, so they give 1 and −1; the integer 0 gives 0.";
}

unary_functions! {
    INT_UNARY of i32:
    CountOnes count_ones IntValue int_function Int, "The number of bits that are 1.";
    LeadingZeros leading_zeros IntValue int_function Int, "The number of 0 bits above the highest 1; the width at 0.";
    TrailingZeros trailing_zeros IntValue int_function Int, "The number of 0 bits below the lowest 1; the width at 0.";
    SwapBytes swap_bytes IntValue int_function Int, "The bytes in the opposite order; one byte stays.";
    ReverseBits reverse_bits IntValue int_function Int, "The bits in the opposite order.";
}

macro_rules! classifications {
    ($($classification:ident $name:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub fn $name<Value: FloatValue>(x: Value) -> Value::Mask {
                x.classify(Classification::$classification)
            }

            impl<T: Float, const R: usize> Tile<T, R> {
                #[doc = $doc]
                pub fn $name(self) -> Tile<bool, R> {
                    self.classify(Classification::$classification)
                }
            }
        )*

        #[cfg(test)]
        type Classifier = fn(Tile<f32, 1>) -> Tile<bool, 1>;

        #[cfg(test)]
        const CLASSIFICATIONS: &[(Classification, &str, Classifier, Classifier)] =
            &[$((Classification::$classification, stringify!($name), $name, Tile::$name),)*];
    };
}

classifications! {
    IsNan is_nan, "Where elements aren't numbers.";
    IsInfinite is_infinite, "Where elements are ∞ or −∞.";
    IsFinite is_finite, "Where elements are neither infinite nor NaN.";
}

macro_rules! binary_functions {
    ($($op:ident $name:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            ///
            /// Each side is a tile or a scalar; axes of extent 1 are broadcast.
            pub fn $name<Left: Pair<Right>, Right>(left: Left, right: Right) -> Left::Output {
                left.binary(BinaryOp::$op, right)
            }
        )*

        #[cfg(test)]
        type BinaryFunction<T> = fn(Tile<T, 1>, Tile<T, 1>) -> Tile<T, 1>;

        #[cfg(test)]
        const BINARY: &[(BinaryOp, &str, BinaryFunction<f32>, BinaryFunction<i32>)] =
            &[$((BinaryOp::$op, stringify!($name), $name, $name),)*];
    };
}

binary_functions! {
    Min min, "The smaller of two values, elementwise; a NaN operand is ignored, −0 < +0.";
    Max max, "The larger of two values, elementwise; a NaN operand is ignored, −0 < +0.";
    Minimum minimum, "The smaller of two floats, elementwise; NaN if either is NaN, −0 < +0.";
    Maximum maximum, "The larger of two floats, elementwise; NaN if either is NaN, −0 < +0.";
    CopySign copysign, "The magnitude of the first float with the sign of the second, elementwise; a NaN's sign too.";
    Powf powf, "The left float to the power of the right, elementwise, within 2 ulp. 1 if the right is 0 or the left is 1; NaN if the left is below zero and the right not an integer.";
    Atan2 atan2, "The angle of the point (right, left) from −π to π, elementwise, within 3 ulp; the signs of zeros count.";
    Hypot hypot, "The length √(left² + right²), elementwise, within 2 ulp, without overflow of the squares; ∞ if either is infinite, else NaN if either is NaN.";
    MulHi mul_hi, "The high half of the product of two integers, elementwise; the product has twice the width.";
    Philox philox, "Random words, elementwise: of Philox4x32-10 (Salmon et al., SC'11) with the left `u64`, the position, as the low half of its counter (the high half is 0) and the right `u64`, the seed, as its key, words 0 and 1; word 0 is the low half.";
    SaturatingAdd saturating_add, "The sum of two integers, elementwise, or the format's bound that it exceeds.";
    SaturatingSub saturating_sub, "The difference of two integers, elementwise, or the format's bound that it exceeds.";
    SaturatingMul saturating_mul, "The product of two integers, elementwise, or the format's bound that it exceeds.";
    DivFloor div_floor, "The quotient of two integers, elementwise, rounded down; 0 where the divisor is 0.";
    DivCeil div_ceil, "The quotient of two integers, elementwise, rounded up; 0 where the divisor is 0.";
    RemEuclid rem_euclid, "The remainder of two integers, elementwise, that is never negative; the dividend where the divisor is 0.";
}

macro_rules! binary_methods {
    ($($op:ident $name:ident $bound:ident, $doc:literal;)*) => {
        $(
            impl<T: $bound, const R: usize> Tile<T, R> {
                #[doc = $doc]
                pub fn $name<Right>(self, right: Right) -> Self
                where
                    Self: Pair<Right, Output = Self>,
                {
                    self.binary(BinaryOp::$op, right)
                }
            }
        )*

        #[cfg(test)]
        const BINARY_METHODS: &[(BinaryOp, &str)] = &[$((BinaryOp::$op, stringify!($name)),)*];
    };
}

binary_methods! {
    Minimum minimum Float, "The smaller of two floats, elementwise; NaN if either is NaN, −0 < +0.";
    Maximum maximum Float, "The larger of two floats, elementwise; NaN if either is NaN, −0 < +0.";
    CopySign copysign Float, "The magnitude with the sign of another float, elementwise; a NaN's sign too.";
    Powf powf Float, "The power with another float as exponent, elementwise, within 2 ulp. 1 if the exponent is 0 or the base is 1; NaN if the base is below zero and the exponent not an integer.";
    Atan2 atan2 Float, "The angle of the point whose height this is, at another float, from −π to π, elementwise, within 3 ulp; the signs of zeros count.";
    Hypot hypot Float, "The length √(x² + y²) with another float y, elementwise, within 2 ulp, without overflow of the squares; ∞ if either is infinite, else NaN if either is NaN.";
    MulHi mul_hi Int, "The high half of the product with another integer, elementwise; the product has twice the width.";
    SaturatingAdd saturating_add Int, "The sum of two integers, elementwise, or the format's bound that it exceeds.";
    SaturatingSub saturating_sub Int, "The difference of two integers, elementwise, or the format's bound that it exceeds.";
    SaturatingMul saturating_mul Int, "The product of two integers, elementwise, or the format's bound that it exceeds.";
    DivFloor div_floor Int, "The quotient of two integers, elementwise, rounded down; 0 where the divisor is 0.";
    DivCeil div_ceil Int, "The quotient of two integers, elementwise, rounded up; 0 where the divisor is 0.";
    RemEuclid rem_euclid Int, "The remainder of two integers, elementwise, that is never negative; the dividend where the divisor is 0.";
}

/// What `rotate_left(x, by)` takes: a tile by a tile of its type or an integer of any, an integer by one of any or a tile
/// of its type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` isn't rotated by `{By}`",
    label = "needs integers, or tiles of integers of one element type and rank",
    note = "convert one side with `.cast()` or `as`"
)]
pub trait Rotated<By> {
    /// The type of `rotate_left(x, by)`.
    type Output;

    #[doc(hidden)]
    fn rotate(self, op: BinaryOp, by: By) -> Self::Output;
}

#[diagnostic::do_not_recommend]
impl<T: Int, const R: usize, By: ShiftAmount<T, R>> Rotated<By> for Tile<T, R> {
    type Output = Tile<T, R>;

    fn rotate(self, op: BinaryOp, by: By) -> Tile<T, R> {
        by.shift(op, self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Shift, By: Shift> Rotated<By> for T {
    type Output = T;

    fn rotate(self, op: BinaryOp, by: By) -> T {
        self.binary(op, cast(by))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Int, const R: usize> Rotated<Tile<T, R>> for T {
    type Output = Tile<T, R>;

    fn rotate(self, op: BinaryOp, by: Tile<T, R>) -> Tile<T, R> {
        Pair::binary(self, op, by)
    }
}

macro_rules! rotations {
    ($($op:ident $name:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            ///
            /// The amount is an integer of any type, or a tile of the elements' type; axes of extent 1 are broadcast.
            pub fn $name<Value: Rotated<By>, By>(x: Value, by: By) -> Value::Output {
                x.rotate(BinaryOp::$op, by)
            }

            impl<T: Int, const R: usize> Tile<T, R> {
                #[doc = $doc]
                ///
                /// The amount is an integer of any type, or a tile of the elements' type; axes of extent 1 are broadcast.
                ///
                /// ```
                /// use tile::prelude::*;
                /// let (x, by) = (Tile::full([1], 0x1234_5678u32), 40u64);
                #[doc = concat!("assert_eq!(x.", stringify!($name), "(by).to_vec(), [0x1234_5678u32.", stringify!($name), "(8)]);")]
                /// ```
                pub fn $name<By: ShiftAmount<T, R>>(self, by: By) -> Self {
                    by.shift(BinaryOp::$op, self)
                }
            }
        )*

        #[cfg(test)]
        const ROTATIONS: &[(BinaryOp, &str, BinaryFunction<i32>, BinaryFunction<i32>)] =
            &[$((BinaryOp::$op, stringify!($name), $name, Tile::$name),)*];
    };
}

rotations! {
    RotateLeft rotate_left, "The bits moved up, elementwise, those that leave at the top coming back below; the amount is taken modulo the width.";
    RotateRight rotate_right, "The bits moved down, elementwise, those that leave at the bottom coming back above; the amount is taken modulo the width.";
}

/// A condition of [`select()`] with these two choices. Each of the three is a tile or a scalar; axes of extent 1 and
/// scalars are broadcast.
#[diagnostic::on_unimplemented(
    message = "`select` doesn't choose between `{A}` and `{B}` by `{Self}`",
    label = "needs a `bool` or a tile of `bool`, and two values of one element type and rank",
    note = "convert one side: a number with `as`, a tile with `.cast()` or `.reshape()`"
)]
pub trait Condition<A, B> {
    /// The type of `select(condition, a, b)`.
    type Output;

    #[doc(hidden)]
    fn choose(self, a: A, b: B) -> Self::Output;
}

#[diagnostic::do_not_recommend]
impl<T: Scalar> Condition<T, T> for bool {
    type Output = T;

    fn choose(self, a: T, b: T) -> T {
        if self { a } else { b }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Condition<T, T> for Tile<bool, R> {
    type Output = Tile<T, R>;

    fn choose(self, a: T, b: T) -> Tile<T, R> {
        self.choose(Tile::full(self.shape(), a), Tile::full(self.shape(), b))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Condition<Tile<T, R>, Tile<T, R>> for Tile<bool, R> {
    type Output = Tile<T, R>;

    fn choose(self, a: Tile<T, R>, b: Tile<T, R>) -> Tile<T, R> {
        let shape = common_shape("select", &[self.shape(), a.shape(), b.shape()]);
        let (a, b) = (a.broadcast(shape).array(), b.broadcast(shape).array());
        Tile::hold(tile_ir::Array::select(&self.broadcast(shape).array(), &a, &b))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Condition<Tile<T, R>, Tile<T, R>> for bool {
    type Output = Tile<T, R>;

    fn choose(self, a: Tile<T, R>, b: Tile<T, R>) -> Tile<T, R> {
        Tile::full([1; R], self).choose(a, b)
    }
}

macro_rules! conditions_of_tile_and_scalar {
    ($($condition:ty, [$($parameters:tt)*];)*) => { $(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($parameters)*> Condition<Tile<T, R>, T> for $condition {
            type Output = Tile<T, R>;

            fn choose(self, a: Tile<T, R>, b: T) -> Tile<T, R> {
                self.choose(a, Tile::full([1; R], b))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, $($parameters)*> Condition<T, Tile<T, R>> for $condition {
            type Output = Tile<T, R>;

            fn choose(self, a: T, b: Tile<T, R>) -> Tile<T, R> {
                self.choose(Tile::full([1; R], a), b)
            }
        }
    )* };
}

conditions_of_tile_and_scalar! {
    bool, [const R: usize];
    Tile<bool, R>, [const R: usize];
}

/// `a` where the condition holds, else `b`, elementwise. Each of the three is a tile or a scalar; axes of extent 1
/// and scalars are broadcast. Of three scalars it is a scalar.
///
/// ```
/// use tile::prelude::*;
///
/// let x = Tile::<f32, 1>::iota([3], 0) - 1.0;
/// assert_eq!(select(x.lt(0.0), 0.0, x).to_vec(), [0.0, 0.0, 1.0]);
/// assert_eq!(select(2 > 1, x, 0.0).to_vec(), x.to_vec());
/// assert_eq!(select(2 > 1, 5, 6), 5);
/// ```
///
/// # Panics
/// If the shapes can't be broadcast together; in a kernel that is a compile error.
pub fn select<Mask: Condition<A, B>, A, B>(condition: Mask, a: A, b: B) -> Mask::Output {
    condition.choose(a, b)
}

#[cfg(test)]
mod tests {
    use super::super::operators;
    use super::*;
    use tile_ir::DType;
    use tile_ir::ops::ReduceOp;

    #[test]
    fn every_unary_op_is_an_operator_or_a_function_of_its_name() {
        for &op in UnaryOp::ALL {
            if operators::UNARY.iter().any(|(operator, _)| *operator == op) {
                continue;
            }
            if let Some(&(_, name, function, method)) = INT_UNARY.iter().find(|row| row.0 == op) {
                assert_eq!(name, op.name());
                let (x, expected) = (40, op.int()(40, DType::I32) as i32);
                assert_eq!(function(Tile::full([1], x)).to_vec(), [expected], "{name}");
                assert_eq!(method(Tile::full([1], x)).to_vec(), [expected], "{name}");
                continue;
            }
            let Some(&(_, name, function, method)) = UNARY.iter().find(|row| row.0 == op) else {
                panic!("no function for {op:?}")
            };
            assert_eq!(name, op.name());
            let (x, expected) = (0.7f32, op.float()(f64::from(0.7f32)) as f32);
            assert_eq!(function(Tile::full([1], x)).to_vec(), [expected], "{name}");
            assert_eq!(method(Tile::full([1], x)).to_vec(), [expected], "{name}");
        }
    }

    #[test]
    fn every_binary_op_is_an_operator_or_a_function_of_its_name() {
        for &op in BinaryOp::ALL {
            if operators::BINARY.iter().any(|(operator, _)| *operator == op) {
                continue;
            }
            if let Some(&(_, name, function, method)) = ROTATIONS.iter().find(|row| row.0 == op) {
                assert_eq!(name, op.name());
                let (x, by) = (Tile::full([1], 0x1234_5678), Tile::full([1], -3));
                let expected = op.int()(0x1234_5678, -3, DType::I32) as i32;
                assert_eq!(function(x, by).to_vec(), [expected], "{name}");
                assert_eq!(method(x, by).to_vec(), [expected], "{name}");
                continue;
            }
            let Some(&(_, name, floats, ints)) = BINARY.iter().find(|row| row.0 == op) else {
                panic!("no function for {op:?}")
            };
            assert_eq!(name, op.name());
            if op.domain().accepts(DType::F32) {
                for (a, b) in [(1.0, 2.0), (2.0, 1.0), (f32::NAN, 1.0), (1.0, f32::NAN)] {
                    let expected = op.float()(f64::from(a), f64::from(b)) as f32;
                    let found = floats(Tile::full([1], a), Tile::full([1], b)).to_vec()[0];
                    assert_eq!(found.to_bits(), expected.to_bits(), "{name}({a}, {b})");
                }
            } else if op.domain().accepts(DType::I32) {
                for (a, b) in [(1, 2), (2, 1), (i32::MAX, 1), (i32::MIN, 1)] {
                    let expected = op.int()(i128::from(a), i128::from(b), DType::I32);
                    let found = ints(Tile::full([1], a), Tile::full([1], b)).to_vec()[0];
                    assert_eq!(i128::from(found), expected, "{name}({a}, {b})");
                }
            }
        }
    }

    /// As methods `min` and `max` reduce an axis; `philox` is one of tiles of `u64` alone.
    #[test]
    fn every_binary_function_is_a_method_too() {
        for &(op, name, ..) in BINARY {
            let is_elsewhere = ReduceOp::from_method(name).is_some() || op == BinaryOp::Philox;
            let is_method = BINARY_METHODS.contains(&(op, name));
            assert!(
                is_method || is_elsewhere,
                "kernels may write `a.{name}(b)`: `binary_methods!` needs a row for it"
            );
        }
    }

    #[test]
    fn every_classification_has_its_function_and_method() {
        let values = [1.0f32, f32::NAN, f32::INFINITY];
        for &classification in Classification::ALL {
            let Some(&(_, name, function, method)) =
                CLASSIFICATIONS.iter().find(|row| row.0 == classification)
            else {
                panic!("no function for {classification:?}")
            };
            assert_eq!(name, classification.name());
            for x in values {
                let expected = [classification.holds(f64::from(x))];
                assert_eq!(function(Tile::full([1], x)).to_vec(), expected, "{name}({x})");
                assert_eq!(method(Tile::full([1], x)).to_vec(), expected, "{name}({x})");
            }
        }
    }

    #[test]
    fn functions_take_scalars_too() {
        assert_eq!(exp(0.0f32), 1.0);
        assert_eq!(abs(-3i32), 3);
        assert_eq!(max(2.0f32, 1.0), 2.0);
        let x = Tile::<f32, 1>::iota([3], 0);
        assert_eq!(max(x, 1.0).to_vec(), [1.0, 1.0, 2.0]);
        assert_eq!(max(1.0, x).to_vec(), [1.0, 1.0, 2.0]);
        assert_eq!(x.minimum(1.0).to_vec(), [0.0, 1.0, 1.0]);
        assert_eq!(x.copysign(-1.0).to_vec(), [-0.0, -1.0, -2.0]);
        assert_eq!(saturating_add(i32::MAX, 1), i32::MAX);
        assert_eq!(Tile::<u8, 1>::iota([2], 0).saturating_sub(1).to_vec(), [0, 0]);
        assert!(is_nan(f32::NAN) && !is_finite(f64::INFINITY));
        assert_eq!((rotate_left(0x81u8, 9u64), rotate_right(1i16, 1)), (3, i16::MIN));
        assert_eq!(rotate_left(1u64, Tile::<u64, 1>::iota([3], 0)).to_vec(), [1, 2, 4]);
        assert_eq!((swap_bytes(0x1234u16), swap_bytes(7i8), reverse_bits(1i32)), (0x3412, 7, i32::MIN));
    }

    #[test]
    fn select_broadcasts_and_types_its_literals() {
        let x = Tile::<f32, 2>::iota([2, 2], 1);
        let rows = Tile::<i32, 2>::iota([2, 1], 0).eq(0);
        assert_eq!(select(rows, x, -1.0).to_vec(), [0.0, 1.0, -1.0, -1.0]);
        let literals: Tile<f32, 2> = select(rows, 1.0, 0.0);
        assert_eq!(literals.to_vec(), [1.0, 0.0]);
    }
}
