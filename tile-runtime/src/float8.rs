//! The 8-bit floats of the OCP specifications as Rust types, and the powers of two that scale them. Arithmetic rounds once,
//! as in a kernel.

use std::fmt;
use std::num::ParseFloatError;
use std::str::FromStr;
use tile_ir::DType;
use tile_ir::round::{Rounding, decode, encode, round};

macro_rules! arithmetic {
    ($($name:ident)*) => { $(
        operators! {
            $name: Add add AddAssign add_assign +, Sub sub SubAssign sub_assign -, Mul mul MulAssign mul_assign *,
                Div div DivAssign div_assign /, Rem rem RemAssign rem_assign %;
        }

        impl std::ops::Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                $name(self.0 ^ 0x80)
            }
        }
    )* };
}

macro_rules! operators {
    ($name:ident: $($trait:ident $method:ident $assign_trait:ident $assign_method:ident $operator:tt),*;) => { $(
        impl std::ops::$trait for $name {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self::from_f64(self.to_f64() $operator other.to_f64())
            }
        }

        impl std::ops::$assign_trait for $name {
            fn $assign_method(&mut self, other: Self) {
                *self = *self $operator other;
            }
        }
    )* };
}

macro_rules! formats {
    ($($(#[$meta:meta])* $name:ident $dtype:ident, magnitude $magnitude:literal, finite below $finite:literal,
        NaN from $nan:literal;)*) => { $(
        $(#[$meta])*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The number with these bits.
            pub const fn from_bits(bits: u8) -> Self {
                $name(bits)
            }

            /// The bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest number; of two equally near the one with an even mantissa.
            pub fn from_f32(value: f32) -> Self {
                Self::from_f64(f64::from(value))
            }

            /// The nearest number; of two equally near the one with an even mantissa.
            pub fn from_f64(value: f64) -> Self {
                $name(encode(DType::$dtype, round(DType::$dtype, Rounding::NearestEven, value)) as u8)
            }

            /// The same number in a wider format.
            pub fn to_f32(self) -> f32 {
                self.to_f64() as f32
            }

            /// The same number in a wider format.
            pub fn to_f64(self) -> f64 {
                decode(DType::$dtype, u64::from(self.0))
            }

            /// Whether it is no number.
            pub const fn is_nan(self) -> bool {
                self.0 & $magnitude >= $nan
            }

            /// Whether it is a number that isn't infinite.
            pub const fn is_finite(self) -> bool {
                self.0 & $magnitude < $finite
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f64() == other.to_f64()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f64().partial_cmp(&other.to_f64())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.to_f64()
            }
        }

        impl FromStr for $name {
            type Err = ParseFloatError;

            /// The number nearest to the `f64` that the text is.
            fn from_str(text: &str) -> Result<Self, ParseFloatError> {
                text.parse().map(Self::from_f64)
            }
        }

        // SAFETY: it is a byte, of which 0 is one.
        #[cfg(feature = "bytemuck")]
        unsafe impl bytemuck::Zeroable for $name {}

        // SAFETY: it is laid out as a byte, and every byte is one.
        #[cfg(feature = "bytemuck")]
        unsafe impl bytemuck::Pod for $name {}
    )* };
}

formats! {
    /// An 8-bit float with 4 exponent bits and 3 mantissa bits: up to ±448, one NaN, no infinity. What is too
    /// large becomes NaN; a kernel's `saturating_cast` makes it ±448.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::f8e4m3fn;
    /// assert_eq!(f8e4m3fn::from_f32(1.07).to_f32(), 1.125);
    /// assert!(f8e4m3fn::from_f32(1000.0).to_f32().is_nan());
    /// ```
    f8e4m3fn F8E4M3FN, magnitude 0x7f, finite below 0x7f, NaN from 0x7f;
    /// An 8-bit float with 5 exponent bits and 2 mantissa bits: the top half of an f16. What is too large becomes
    /// infinite.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::f8e5m2;
    /// assert_eq!(f8e5m2::from_f32(1.1).to_f32(), 1.0);
    /// assert_eq!(f8e5m2::from_f32(1e9).to_f32(), f32::INFINITY);
    /// ```
    f8e5m2 F8E5M2, magnitude 0x7f, finite below 0x7c, NaN from 0x7d;
    /// A power of two from 2⁻¹²⁷ to 2¹²⁷, or NaN: the scale of a block of numbers in the OCP's microscaling formats. It has no
    /// sign, no zero and no arithmetic. What is smaller becomes 2⁻¹²⁷, zero too; what is negative or too large becomes NaN.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::f8e8m0fnu;
    /// assert_eq!(f8e8m0fnu::from_f32(0.3).to_f32(), 0.25);
    /// assert_eq!(f8e8m0fnu::from_f32(0.0).to_bits(), 0);
    /// assert!(f8e8m0fnu::from_f32(-1.0).to_f32().is_nan());
    /// ```
    f8e8m0fnu F8E8M0FNU, magnitude 0xff, finite below 0xff, NaN from 0xff;
}

arithmetic!(f8e4m3fn f8e5m2);

impl f8e5m2 {
    /// Whether it is infinite, of either sign.
    pub const fn is_infinite(self) -> bool {
        self.0 & 0x7f == 0x7c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every() -> impl Iterator<Item = u8> {
        0..=u8::MAX
    }

    #[test]
    fn every_byte_is_what_its_number_is() {
        macro_rules! check {
            ($($name:ident)*) => { $(for number in every().map($name::from_bits) {
                let wide = f64::from(number);
                assert_eq!(number.is_nan(), wide.is_nan(), "{}", number.to_bits());
                assert_eq!(number.is_finite(), wide.is_finite(), "{}", number.to_bits());
                assert!(f64::from(f32::from(number)) == wide || wide.is_nan(), "{}", number.to_bits());
                let read: $name = number.to_string().parse().unwrap();
                assert!(read == number || number.is_nan() && read.is_nan(), "{number}");
            })* };
        }
        check!(f8e4m3fn f8e5m2 f8e8m0fnu);
        for number in every().map(f8e5m2::from_bits) {
            assert_eq!(number.is_infinite(), f64::from(number).is_infinite(), "{}", number.to_bits());
        }
        assert!("1.0x".parse::<f8e5m2>().is_err());
        assert_eq!("1e9".parse::<f8e5m2>().unwrap().to_bits(), 0x7c);
    }

    #[test]
    fn assignments_are_the_operators() {
        macro_rules! check {
            ($($name:ident: $($assign:tt $operator:tt),*;)*) => { $($(
                for (left, right) in every().step_by(7).flat_map(|a| every().step_by(5).map(move |b| (a, b))) {
                    let (mut left, right) = ($name::from_bits(left), $name::from_bits(right));
                    let expected = left $operator right;
                    left $assign right;
                    assert!(left == expected || left.is_nan() && expected.is_nan(), "{left} {expected}");
                }
            )*)* };
        }
        check! {
            f8e4m3fn: += +, -= -, *= *, /= /, %= %;
            f8e5m2: += +, -= -, *= *, /= /, %= %;
        }
    }

    #[cfg(feature = "bytemuck")]
    #[test]
    fn bytes_are_looked_at_as_numbers_and_back() {
        let bytes = [0x38, 0xb8, 0x7f];
        let numbers: &[f8e4m3fn] = bytemuck::cast_slice(&bytes);
        assert_eq!(numbers[..2], [1.0, -1.0].map(f8e4m3fn::from_f32));
        assert_eq!(bytemuck::cast_slice::<_, u8>(numbers), bytes);
        let scales: &[f8e8m0fnu] = bytemuck::cast_slice(&bytes);
        assert_eq!(scales[2].to_f32(), 1.0);
        assert_eq!(bytemuck::cast_slice::<u8, f8e5m2>(&bytes)[0].to_f32(), 0.5);
        let halves: &[half::f16] = bytemuck::cast_slice(&[0x3c00_u16]);
        assert_eq!(halves, [half::f16::ONE]);
    }
}
