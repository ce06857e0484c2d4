//! The Rust types that tensors and tiles hold, and what generic kernels may ask of them.

use crate::float8::{f8e4m3fn, f8e5m2, f8e8m0fnu};
use half::{bf16, f16};
use std::fmt::{Debug, Display};
use std::ops;
use tile_ir::array::Elements;
use tile_ir::ops::{BinaryOp, Literal, UnaryOp};
use tile_ir::{Array, DType, round};

mod sealed {
    pub trait Sealed {}
    pub trait Written {}
    impl Written for f64 {}
    impl Written for i128 {}
}

/// A number that a kernel takes as an argument: an [`Element`] or `usize`.
pub trait Scalar: sealed::Sealed + Copy + PartialOrd + Send + Sync + 'static {
    /// Its format in the IR.
    const FORMAT: DType;

    /// The slot that passes it to compiled code: its bits in the low bytes.
    fn to_slot(self) -> u64;

    /// The scalar in a slot.
    fn from_slot(slot: u64) -> Self;

    #[doc(hidden)]
    fn number(self) -> Literal;

    /// A number of its format.
    #[doc(hidden)]
    fn from_number(number: Literal) -> Self;
}

/// A scalar with the arithmetic of kernels: a [`Number`] or `usize`. Integers wrap, `x / 0` is 0 and `x % 0` is `x`;
/// floats have Rust's arithmetic.
pub trait Arithmetic: Scalar {
    #[doc(hidden)]
    fn binary(self, op: BinaryOp, right: Self) -> Self;

    #[doc(hidden)]
    fn unary(self, op: UnaryOp) -> Self;
}

/// A type that tensors and tiles hold.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::Element;
/// assert_eq!(f32::DTYPE.name(), "f32");
/// ```
pub trait Element: Scalar + Debug + Display + Default {
    /// Its format in the IR.
    const DTYPE: DType;

    /// The value as an f64; `bool` as 0 and 1.
    fn to_float(self) -> f64;

    /// The value as an integer; floats are truncated.
    fn to_int(self) -> i128;

    /// The value nearest to an f64.
    fn from_float(value: f64) -> Self;

    /// An integer as this type; wraps to its width.
    fn from_int(value: i128) -> Self;
}

/// The elements as the evaluator has them, in row-major order.
#[doc(hidden)]
pub fn array_of<T: Element>(shape: &[usize], elements: &[T]) -> Array {
    let elements = if T::DTYPE.is_float() {
        Elements::Float(elements.iter().map(|element| element.to_float()).collect())
    } else {
        Elements::Int(elements.iter().map(|element| element.to_int()).collect())
    };
    Array::new(T::DTYPE, shape.to_vec(), elements)
}

/// The elements that the evaluator has.
#[doc(hidden)]
pub fn elements_of<T: Element>(array: &Array) -> Vec<T> {
    match array.elements() {
        Elements::Int(values) => values.iter().map(|&value| T::from_int(value)).collect(),
        Elements::Float(values) => values.iter().map(|&value| T::from_float(value)).collect(),
    }
}

/// An integer or float. It has the operators of numbers, so that the scalars of a generic kernel do.
pub trait Number:
    Element
    + Arithmetic
    + ops::Add<Output = Self>
    + ops::Sub<Output = Self>
    + ops::Mul<Output = Self>
    + ops::Div<Output = Self>
    + ops::Rem<Output = Self>
{
    /// 0.
    const ZERO: Self;

    /// 1.
    const ONE: Self;

    /// The smallest number: of a float the largest one with a minus sign, not −∞.
    const MIN: Self;

    /// The largest number, of a float the largest finite one: what an element is scaled to that has to fit.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Number, f8e4m3fn, f8e5m2};
    /// fn scale<T: Number>(largest: f32) -> f32 {
    ///     largest / T::MAX.to_float() as f32
    /// }
    /// assert_eq!((scale::<i8>(254.0), scale::<f8e4m3fn>(224.0), scale::<f8e5m2>(57344.0)), (2.0, 0.5, 1.0));
    /// ```
    const MAX: Self;

    /// The number written as a literal, for kernels that are generic over their element type.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::Number;
    /// assert_eq!((i32::of(15), f32::of(2), f32::of(0.5), u8::of(3.0)), (15, 2.0, 0.5, 3));
    /// ```
    ///
    /// # Panics
    /// If an integer is written with a fraction.
    fn of<L: Written>(literal: L) -> Self {
        literal.number()
    }
}

/// What a number is written as where its type isn't known: a literal of an integer or of a float.
#[diagnostic::on_unimplemented(
    message = "`of` takes a literal, and this is a number of `{Self}`",
    label = "no literal",
    note = "to convert a float `x` on the host write `bf16::from_f32(x)`, of an f64 `bf16::from_f64(x)`; in a kernel, `x as bf16` of a number and `x.cast::<bf16>()` of a tile"
)]
pub trait Written: sealed::Written {
    #[doc(hidden)]
    fn literal(self) -> Literal;

    #[doc(hidden)]
    fn number<T: Scalar>(self) -> T
    where
        Self: Sized,
    {
        match self.literal().in_format(T::FORMAT) {
            Literal::Float(value) if !T::FORMAT.is_float() => {
                panic!("{value} isn't a number of {}", T::FORMAT)
            }
            number => T::from_number(number),
        }
    }
}

impl Written for f64 {
    fn literal(self) -> Literal {
        Literal::Float(self)
    }
}

impl Written for i128 {
    fn literal(self) -> Literal {
        Literal::Int(self)
    }
}

/// A float of any width.
pub trait Float: Number {
    /// ∞; NaN in a format that has none.
    const INFINITY: Self;

    /// −∞; NaN in a format that has none.
    const NEG_INFINITY: Self;

    /// Not a number.
    const NAN: Self;

    /// The distance from 1 to the next larger number.
    const EPSILON: Self;

    /// The smallest positive number that is normal.
    const MIN_POSITIVE: Self;
}

/// What scales the factors of a product: a float or a power of two.
pub trait Scale: Element {}

/// An element each of whose bit patterns means something, as not every byte is a `bool`.
pub trait AnyBits: Element {}

impl<T: Number> AnyBits for T {}
impl AnyBits for f8e8m0fnu {}

/// An integer or `bool`: what `&`, `|`, `^` and `!` work on.
pub trait Bits:
    Element
    + ops::BitAnd<Output = Self>
    + ops::BitOr<Output = Self>
    + ops::BitXor<Output = Self>
    + ops::Not<Output = Self>
{
}

/// A signed or unsigned integer.
pub trait Int: Number + Bits + ops::Shl<Output = Self> + ops::Shr<Output = Self> {}

fn element<T: Element>(number: Literal) -> T {
    match number {
        Literal::Int(value) => T::from_int(value),
        Literal::Float(value) => T::from_float(value),
    }
}

macro_rules! integer_arithmetic {
    ($ty:ident $dtype:ident) => {
        impl Arithmetic for $ty {
            fn binary(self, op: BinaryOp, right: Self) -> Self {
                op.int()(self as i128, right as i128, DType::$dtype) as $ty
            }
            fn unary(self, op: UnaryOp) -> Self {
                op.int()(self as i128, DType::$dtype) as $ty
            }
        }
    };
}

macro_rules! integers {
    ($($ty:ident $dtype:ident;)*) => { $(
        impl sealed::Sealed for $ty {}
        impl Scalar for $ty {
            const FORMAT: DType = DType::$dtype;
            fn to_slot(self) -> u64 {
                let mut bytes = [0; 8];
                bytes[..size_of::<$ty>()].copy_from_slice(&self.to_le_bytes());
                u64::from_le_bytes(bytes)
            }
            fn from_slot(slot: u64) -> Self {
                let mut bytes = [0; size_of::<$ty>()];
                bytes.copy_from_slice(&slot.to_le_bytes()[..size_of::<$ty>()]);
                <$ty>::from_le_bytes(bytes)
            }
            fn number(self) -> Literal { Literal::Int(self.to_int()) }
            fn from_number(number: Literal) -> Self { element(number) }
        }
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn to_float(self) -> f64 { self as f64 }
            fn to_int(self) -> i128 { i128::from(self) }
            fn from_float(value: f64) -> Self { value as $ty }
            fn from_int(value: i128) -> Self { value as $ty }
        }
        integer_arithmetic!($ty $dtype);
        impl Number for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const MIN: Self = <$ty>::MIN;
            const MAX: Self = <$ty>::MAX;
        }
        impl Bits for $ty {}
        impl Int for $ty {}
    )* };
}

integers! { i8 I8; i16 I16; i32 I32; i64 I64; u8 U8; u16 U16; u32 U32; u64 U64; }

macro_rules! real_elements {
    ($($ty:ident $dtype:ident, $to:expr, $from:expr;)*) => { $(
        impl sealed::Sealed for $ty {}
        impl Scalar for $ty {
            const FORMAT: DType = DType::$dtype;
            fn to_slot(self) -> u64 { u64::from(self.to_bits()) }
            fn from_slot(slot: u64) -> Self { <$ty>::from_bits(slot as _) }
            fn number(self) -> Literal { Literal::Float(self.to_float()) }
            fn from_number(number: Literal) -> Self { element(number) }
        }
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn to_float(self) -> f64 {
                let value = $to(self);
                // Conversions make a signalling NaN quiet, and some give every NaN the same bits.
                if value.is_nan() { round::decode(DType::$dtype, self.to_bits().into()) } else { value }
            }
            fn to_int(self) -> i128 { $to(self) as i128 }
            fn from_float(value: f64) -> Self {
                if value.is_nan() {
                    return <$ty>::from_bits(round::encode(DType::$dtype, value) as _);
                }
                $from(tile_ir::array::round_float(DType::$dtype, value))
            }
            fn from_int(value: i128) -> Self {
                Self::from_float(tile_ir::array::int_to_float(DType::$dtype, value))
            }
        }
        impl Scale for $ty {}
    )* };
}

real_elements! { f8e8m0fnu F8E8M0FNU, f8e8m0fnu::to_f64, f8e8m0fnu::from_f64; }

macro_rules! floats {
    ($($ty:ident $dtype:ident, $to:expr, $from:expr, [$zero:expr, $one:expr, $infinity:expr, $nan:expr], $limits:expr;)*) => { $(
        real_elements! { $ty $dtype, $to, $from; }
        impl Arithmetic for $ty {
            fn binary(self, op: BinaryOp, right: Self) -> Self {
                match op {
                    BinaryOp::Add => self + right,
                    BinaryOp::Sub => self - right,
                    BinaryOp::Mul => self * right,
                    BinaryOp::Div => self / right,
                    BinaryOp::Rem => self % right,
                    op => Self::from_float(op.float()(self.to_float(), right.to_float())),
                }
            }
            fn unary(self, op: UnaryOp) -> Self {
                match op {
                    UnaryOp::Neg => -self,
                    op => Self::from_float(op.float()(self.to_float())),
                }
            }
        }
        impl Number for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const MIN: Self = $limits[0];
            const MAX: Self = $limits[1];
        }
        impl Float for $ty {
            const INFINITY: Self = $infinity[0];
            const NEG_INFINITY: Self = $infinity[1];
            const NAN: Self = $nan;
            const EPSILON: Self = $limits[2];
            const MIN_POSITIVE: Self = $limits[3];
        }
    )* };
}

// The limits are `MIN`, `MAX`, `EPSILON` and `MIN_POSITIVE`.
floats! {
    f8e4m3fn F8E4M3FN, f8e4m3fn::to_f64, f8e4m3fn::from_f64,
        [f8e4m3fn::from_bits(0), f8e4m3fn::from_bits(0x38), [f8e4m3fn::from_bits(0x7f); 2], f8e4m3fn::from_bits(0x7f)],
        [f8e4m3fn::from_bits(0xfe), f8e4m3fn::from_bits(0x7e), f8e4m3fn::from_bits(0x20), f8e4m3fn::from_bits(0x08)];
    f8e5m2 F8E5M2, f8e5m2::to_f64, f8e5m2::from_f64,
        [f8e5m2::from_bits(0), f8e5m2::from_bits(0x3c), [f8e5m2::from_bits(0x7c), f8e5m2::from_bits(0xfc)], f8e5m2::from_bits(0x7e)],
        [f8e5m2::from_bits(0xfb), f8e5m2::from_bits(0x7b), f8e5m2::from_bits(0x34), f8e5m2::from_bits(0x04)];
    f16 F16, f16::to_f64, f16::from_f64, [f16::ZERO, f16::ONE, [f16::INFINITY, f16::NEG_INFINITY], f16::NAN],
        [f16::MIN, f16::MAX, f16::EPSILON, f16::MIN_POSITIVE];
    bf16 BF16, bf16::to_f64, bf16::from_f64, [bf16::ZERO, bf16::ONE, [bf16::INFINITY, bf16::NEG_INFINITY], bf16::NAN],
        [bf16::MIN, bf16::MAX, bf16::EPSILON, bf16::MIN_POSITIVE];
    f32 F32, f64::from, |value| value as f32, [0.0, 1.0, [f32::INFINITY, f32::NEG_INFINITY], f32::NAN],
        [f32::MIN, f32::MAX, f32::EPSILON, f32::MIN_POSITIVE];
    f64 F64, |value| value, |value| value, [0.0, 1.0, [f64::INFINITY, f64::NEG_INFINITY], f64::NAN],
        [f64::MIN, f64::MAX, f64::EPSILON, f64::MIN_POSITIVE];
}

impl sealed::Sealed for bool {}

impl Scalar for bool {
    const FORMAT: DType = DType::Bool;
    fn to_slot(self) -> u64 {
        u64::from(self)
    }
    fn from_slot(slot: u64) -> Self {
        slot != 0
    }
    fn number(self) -> Literal {
        Literal::Int(self.to_int())
    }
    fn from_number(number: Literal) -> Self {
        element(number)
    }
}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn to_float(self) -> f64 {
        f64::from(u8::from(self))
    }
    fn to_int(self) -> i128 {
        i128::from(self)
    }
    fn from_float(value: f64) -> Self {
        value != 0.0
    }
    fn from_int(value: i128) -> Self {
        value != 0
    }
}

impl Bits for bool {}

impl sealed::Sealed for usize {}

integer_arithmetic!(usize Index);

impl Scalar for usize {
    const FORMAT: DType = DType::Index;
    fn to_slot(self) -> u64 {
        self as u64
    }
    fn from_slot(slot: u64) -> Self {
        slot as usize
    }
    fn number(self) -> Literal {
        Literal::Int(self as i128)
    }
    fn from_number(number: Literal) -> Self {
        match number {
            Literal::Int(value) => value as usize,
            Literal::Float(value) => value as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_the_bits_in_the_low_bytes() {
        assert_eq!((-1i8).to_slot(), 0xff);
        assert_eq!(1.0f32.to_slot(), 0x3f80_0000);
        assert_eq!(bf16::from_f32(1.0).to_slot(), 0x3f80);
        assert_eq!(true.to_slot(), 1);
        assert_eq!(usize::MAX.to_slot(), u64::MAX);
        fn check<T: Scalar + std::fmt::Debug>(values: &[T]) {
            values.iter().for_each(|&value| assert_eq!(T::from_slot(value.to_slot()), value));
        }
        check(&[i8::MIN, -1, 5]);
        check(&[u64::MAX, 3]);
        check(&[f64::MIN_POSITIVE, -2.5]);
        check(&[bf16::from_f32(-1.5)]);
        check(&[f8e4m3fn::from_float(-1.5)]);
        check(&[f8e8m0fnu::from_float(0.25), f8e8m0fnu::from_float(0.0)]);
        check(&[true, false]);
        check(&[usize::MAX, 0]);
    }

    /// By way of `f64`, which has neither of the last two bits, it would be a tie, and go to 2^60.
    #[test]
    fn integers_are_rounded_once() {
        let beside_a_tie = (1_i128 << 60) + (1 << 36) + 1;
        assert_eq!(f32::from_int(beside_a_tie).to_bits(), ((1_i64 << 60) as f32).next_up().to_bits());
        assert_eq!(f32::from_int(-beside_a_tie), -f32::from_int(beside_a_tie));
        assert_eq!(f64::from_int(i128::from(i64::MAX)), 2f64.powi(63));
    }

    #[test]
    fn constants_of_generic_code() {
        fn check<T: Float>() {
            assert_eq!((T::ZERO.to_float(), T::ONE.to_float()), (0.0, 1.0), "{}", T::DTYPE);
            assert!(T::NAN.to_float().is_nan(), "{}", T::DTYPE);
            for (constant, sign) in [(T::INFINITY, 1.0), (T::NEG_INFINITY, -1.0)] {
                let rounded = T::from_float(sign * f64::INFINITY).to_float();
                let constant = constant.to_float();
                assert!(constant == rounded || constant.is_nan() && rounded.is_nan(), "{}", T::DTYPE);
            }
            let format = T::DTYPE.float_format().expect("a float format");
            assert_eq!((T::MIN.to_float(), T::MAX.to_float()), (-format.max(), format.max()), "{}", T::DTYPE);
            assert_eq!(T::EPSILON.to_float(), format.epsilon(), "{}", T::DTYPE);
            assert_eq!(T::MIN_POSITIVE.to_float(), 2f64.powi(format.min_exponent()), "{}", T::DTYPE);
        }
        check::<f8e4m3fn>();
        check::<f8e5m2>();
        check::<f16>();
        check::<bf16>();
        check::<f32>();
        check::<f64>();
        assert_eq!((<u8 as Number>::ZERO, <i64 as Number>::ONE), (0, 1));
    }

    #[test]
    fn literals_of_generic_code() {
        assert_eq!(<i32 as Number>::of(2.0), 2);
        assert_eq!(<f16 as Number>::of(0.5).to_f32(), 0.5);
    }
}
