//! Arithmetic of scalars as kernels mean it on every device: that of integers wraps, `x / 0` is 0 and `x % 0` is `x`,
//! and a shift takes the low bits of its distance; functions are those of tiles, which Rust's own aren't to the last digit.
//!
//! `#[tile_kernel]` puts these in place of the operators on integers, which in Rust panic where the result doesn't
//! fit, and on scalars of a type parameter, which may be one; of methods, of which Rust's own numbers don't have all, and those
//! of other formats none; and [`cast`] in place of an `as` that Rust doesn't have. They are made of the rows of the op tables, as
//! the functions of tiles are.
//!
//! ```
//! use tile::kernel::scalar;
//!
//! assert_eq!(scalar::add(i32::MAX, 1), i32::MIN);
//! assert_eq!((scalar::div(7u8, 0), scalar::rem(7u8, 0)), (0, 7));
//! ```

use super::arguments::FloatValue as _;
use super::{Float, Tile};
use half::{bf16, f16};
use tile_ir::Array;
use tile_ir::ops::{BinaryOp, Classification, UnaryOp};
use tile_runtime::element::{Arithmetic, Scalar};
use tile_runtime::{f8e4m3fn, f8e5m2};

/// A function of one scalar, by its name: what counts bits gives a `u32`, as Rust's own methods do.
macro_rules! unary_function {
    (count_ones $($row:tt)*) => { unary_function! { counts count_ones $($row)* } };
    (leading_zeros $($row:tt)*) => { unary_function! { counts leading_zeros $($row)* } };
    (trailing_zeros $($row:tt)*) => { unary_function! { counts trailing_zeros $($row)* } };
    (counts $name:ident $op:ident $doc:expr) => {
        #[doc = $doc]
        pub fn $name<T: Arithmetic>(value: T) -> u32 {
            cast(value.unary(UnaryOp::$op))
        }
    };
    ($name:ident $op:ident $doc:expr) => {
        #[doc = $doc]
        pub fn $name<T: Arithmetic>(value: T) -> T {
            value.unary(UnaryOp::$op)
        }
    };
}

/// A function of two scalars, by its name: operators move bits by a number of any type, and functions, as Rust's own methods do, by
/// a `u32`.
macro_rules! binary_function {
    (shl $($row:tt)*) => { binary_function! { moves shl $($row)* } };
    (shr $($row:tt)*) => { binary_function! { moves shr $($row)* } };
    (rotate_left $($row:tt)*) => { binary_function! { rotates rotate_left $($row)* } };
    (rotate_right $($row:tt)*) => { binary_function! { rotates rotate_right $($row)* } };
    (rotates $name:ident $op:ident $doc:expr) => {
        #[doc = $doc]
        pub fn $name<T: Arithmetic>(value: T, by: u32) -> T {
            value.binary(BinaryOp::$op, cast(by))
        }
    };
    (moves $name:ident $op:ident $doc:expr) => {
        #[doc = $doc]
        pub fn $name<T: Arithmetic, By: Scalar>(value: T, by: By) -> T {
            value.binary(BinaryOp::$op, cast(by))
        }
    };
    ($name:ident $op:ident $doc:expr) => {
        #[doc = $doc]
        pub fn $name<T: Arithmetic>(left: T, right: T) -> T {
            left.binary(BinaryOp::$op, right)
        }
    };
}

macro_rules! unary_functions {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        $(unary_function! { $name $op concat!($doc $(, $ulps, $further)?) })*
    };
}

macro_rules! binary_functions {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        $(binary_function! { $name $op concat!($doc $(, $ulps, $further)?) })*
    };
}

macro_rules! classifications {
    ($($classification:ident $name:ident, $float:expr, $doc:literal;)*) => { $(
        #[doc = $doc]
        pub fn $name<T: Float>(value: T) -> bool {
            value.classify(Classification::$classification)
        }
    )* };
}

tile_ir::unary_ops!(unary_functions);
tile_ir::binary_ops!(binary_functions);
tile_ir::classifications!(classifications);

/// `0 - value`, which wraps: of numbers without a sign, too.
///
/// ```
/// use tile::kernel::scalar;
///
/// assert_eq!((scalar::wrapping_neg(1u8), scalar::wrapping_neg(i8::MIN)), (255, i8::MIN));
/// ```
pub fn wrapping_neg<T: Arithmetic>(value: T) -> T {
    sub(cast(0i32), value)
}

/// `value << by` by the low bits of `by`, a `u32` as of Rust's own method.
pub fn wrapping_shl<T: Arithmetic>(value: T, by: u32) -> T {
    shl(value, by)
}

/// `value >> by` by the low bits of `by`, a `u32` as of Rust's own method.
pub fn wrapping_shr<T: Arithmetic>(value: T, by: u32) -> T {
    shr(value, by)
}

/// The sum, which wraps, and whether it does.
pub fn overflowing_add<T: Arithmetic>(left: T, right: T) -> (T, bool) {
    (add(left, right), add(left, right) != saturating_add(left, right))
}

/// The difference, which wraps, and whether it does.
pub fn overflowing_sub<T: Arithmetic>(left: T, right: T) -> (T, bool) {
    (sub(left, right), sub(left, right) != saturating_sub(left, right))
}

/// The product, which wraps, and whether it does.
pub fn overflowing_mul<T: Arithmetic>(left: T, right: T) -> (T, bool) {
    let wrapped = mul(left, right);
    // One that wraps may come to the largest number, as which one that saturates ends: the high half says which it is.
    let sign = if wrapped < cast(0i32) { -1i32 } else { 0 };
    (wrapped, mul_hi(left, right) != cast(sign))
}

/// `value * factor + term`, rounded once.
pub fn mul_add<T: Float>(value: T, factor: T, term: T) -> T {
    Tile::full([1], value).mul_add(Tile::full([1], factor), Tile::full([1], term)).item()
}

/// `value` to a power, which wraps.
///
/// ```
/// use tile::kernel::scalar;
///
/// assert_eq!((scalar::pow(3u8, 4), scalar::pow(200u8, 2), scalar::pow(7, 0)), (81, 64, 1));
/// ```
pub fn pow<T: Arithmetic>(value: T, exponent: u32) -> T {
    let bits = (0..u32::BITS - exponent.leading_zeros()).rev();
    bits.fold(cast(1i32), |power, bit| {
        let square = mul(power, power);
        if exponent >> bit & 1 == 1 { mul(square, value) } else { square }
    })
}

/// `value` within `low` and `high`, and `high` where that is the lower one; NaN stays.
pub fn clamp<T: Scalar>(value: T, low: T, high: T) -> T {
    let value = if value < low { low } else { value };
    if value > high { high } else { value }
}

/// A number as it is, also of a reference to one, as methods have it.
///
/// ```
/// use tile::kernel::scalar::ByValue as _;
///
/// assert_eq!([1.5, 2.5].iter().map(|x| x.by_value()).sum::<f64>(), 4.0);
/// ```
pub trait ByValue {
    /// The number.
    fn by_value(self) -> Self;
}

impl<T: Arithmetic> ByValue for T {
    fn by_value(self) -> T {
        self
    }
}

/// What has `powi` as a method: a float, or a reference to one.
pub trait Powers {
    /// The number's type.
    type Number;

    #[doc(hidden)]
    fn to_the(self, exponent: i32) -> Self::Number;
}

macro_rules! powers {
    ($($ty:ty)*) => {
        $(
            impl Powers for $ty {
                type Number = $ty;

                fn to_the(self, exponent: i32) -> $ty {
                    let size = exponent.unsigned_abs();
                    let Some(highest) = size.checked_ilog2() else { return cast(1i32) };
                    let mut power = self;
                    for bit in (0..highest).rev() {
                        power = mul(power, power);
                        if size >> bit & 1 == 1 {
                            power = mul(power, self);
                        }
                    }
                    if exponent < 0 { recip(power) } else { power }
                }
            }

            impl Powers for &$ty {
                type Number = $ty;

                fn to_the(self, exponent: i32) -> $ty {
                    (*self).to_the(exponent)
                }
            }
        )*
    };
}

powers!(f8e4m3fn f8e5m2 f16 bf16 f32 f64);

/// The power with an exponent that is written out, by the products that [`Tile::powi`](super::Tile::powi) takes, each
/// rounded; Rust's own takes them in an order that it doesn't say.
pub fn powi<P: Powers>(value: P, exponent: i32) -> P::Number {
    value.to_the(exponent)
}

/// `value as To`, of any number types: rounded to the nearest, truncated to an integer, or wrapped.
pub fn cast<From: Scalar, To: Scalar>(value: From) -> To {
    To::from_number(Array::scalar(From::FORMAT, value.number()).cast(To::FORMAT).get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_those_of_tiles() {
        assert_eq!(sub(0usize, 1), usize::MAX);
        assert_eq!(mul(i64::MIN, -1), i64::MIN);
        assert_eq!((div(i8::MIN, -1), rem(i8::MIN, -1)), (i8::MIN, 0));
        assert_eq!((div(-7, 2), rem(-7, 2)), (-3, -1));
        assert_eq!((div_ceil(7usize, 2), div_ceil(usize::MAX, 2), div_ceil(7usize, 0)), (4, 1 << 63, 0));
        assert_eq!((shl(1u8, 9), shr(-8i32, 33)), (2, -4));
        assert_eq!((shl(1i32, 3usize), shr(1u64 << 40, 40u8), shl(1i8, -1i64)), (8, 1, -128));
        assert_eq!((neg(i32::MIN), abs(i64::MIN), abs(-3i8), abs(-0.5f32)), (i32::MIN, i64::MIN, 3, 0.5));
        assert_eq!((div_floor(-7, 2), div_floor(7, 0)), (-4, 0));
        assert_eq!((rem_euclid(-7, 2), rem_euclid(-7, 0), rem_euclid(i8::MIN, -1)), (1, -7, 0));
        assert_eq!((clamp(7, 0, 5), clamp(1.0, 5.0, 2.0), clamp(3usize, 4, 9)), (5, 2.0, 4));
        assert!(clamp(f32::NAN, 0.0, 1.0).is_nan());
    }

    #[test]
    fn overflows_are_those_of_std() {
        let bytes = || (0..=u8::MAX).flat_map(|a| (0..=u8::MAX).map(move |b| (a, b)));
        for (a, b) in bytes() {
            assert_eq!(overflowing_add(a, b), a.overflowing_add(b), "{a} {b}");
            assert_eq!(overflowing_sub(a, b), a.overflowing_sub(b), "{a} {b}");
            assert_eq!(overflowing_mul(a, b), a.overflowing_mul(b), "{a} {b}");
            let (a, b) = (a as i8, b as i8);
            assert_eq!(overflowing_add(a, b), a.overflowing_add(b), "{a} {b}");
            assert_eq!(overflowing_sub(a, b), a.overflowing_sub(b), "{a} {b}");
            assert_eq!(overflowing_mul(a, b), a.overflowing_mul(b), "{a} {b}");
        }
        assert_eq!(overflowing_mul(usize::MAX, 2), (usize::MAX - 1, true));
        assert_eq!(overflowing_mul(i64::MIN, -1), (i64::MIN, true));
    }

    #[test]
    fn functions_are_those_of_tiles() {
        let x = f16::from_f32(0.3);
        assert_eq!((rsqrt(x), minimum(x, f16::NAN).is_nan()), (Tile::full([1], x).rsqrt().item(), true));
        assert_eq!((count_ones(7usize), rotate_left(0x81u8, 1u32), mul_hi(1u64 << 40, 1 << 30)), (3, 3, 64));
        assert_eq!((acosh(1.000_001f32), acosh(2e38f32)), (0.001_381_067_8, 88.884_53));
        assert_eq!(
            (mul_add(x, x, x), is_nan(x)),
            (f16::from_f32(x.to_f32().mul_add(x.to_f32(), x.to_f32())), false)
        );
    }

    #[test]
    fn powers_are_those_of_tiles() {
        for exponent in [-7, -2, -1, 0, 1, 2, 3, 5, 7, 11, 14, 15, 23] {
            for i in 0..40u8 {
                let x = 0.8 + f32::from(i) * 0.013;
                let of_tile = Tile::full([1], x).powi(exponent).to_vec()[0];
                assert_eq!(
                    (powi(x, exponent), powi(&x, exponent)),
                    (of_tile, of_tile),
                    "{x} to the {exponent}"
                );
                let narrow = bf16::from_f32(x);
                let of_tile = Tile::full([1], narrow).powi(exponent).to_vec()[0];
                assert_eq!(powi(narrow, exponent), of_tile, "{x} to the {exponent}, of bf16");
            }
        }
    }

    #[test]
    fn casts_are_those_of_as_and_of_formats_that_as_does_not_know() {
        assert_eq!((cast::<_, u8>(300i32), cast::<_, u8>(-1.5f32), cast::<_, i32>(f64::NAN)), (44, 0, 0));
        assert_eq!((cast::<_, f32>(true), cast::<_, usize>(7.9f32)), (1.0, 7));
        assert_eq!(cast::<usize, bf16>(257).to_f32(), 256.0);
        assert_eq!(cast::<_, f32>(f16::from_f32(0.1)), f16::from_f32(0.1).to_f32());
    }
}
