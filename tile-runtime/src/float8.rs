//! The 8-bit floats of the OCP specifications as Rust types, and the powers of two that scale them. Arithmetic rounds once,
//! as in a kernel.

use std::fmt;
use tile_ir::DType;
use tile_ir::round::{Rounding, decode, encode, round};

macro_rules! arithmetic {
    ($($name:ident)*) => { $(
        operators! {
            $name: Add add +, Sub sub -, Mul mul *, Div div /, Rem rem %;
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
    ($name:ident: $($trait:ident $method:ident $operator:tt),*;) => { $(
        impl std::ops::$trait for $name {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self::from_f64(self.to_f64() $operator other.to_f64())
            }
        }
    )* };
}

macro_rules! formats {
    ($($(#[$meta:meta])* $name:ident $dtype:ident;)*) => { $(
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
    )* };
}

formats! {
    /// An 8-bit float with 4 exponent bits and 3 mantissa bits: up to ±448, one NaN, no infinity. What is too
    /// large becomes NaN; a kernel's `saturating_cast` makes it ±448.
    ///
    /// ```
    /// use tile_runtime::f8e4m3fn;
    /// assert_eq!(f8e4m3fn::from_f32(1.07).to_f32(), 1.125);
    /// assert!(f8e4m3fn::from_f32(1000.0).to_f32().is_nan());
    /// ```
    f8e4m3fn F8E4M3FN;
    /// An 8-bit float with 5 exponent bits and 2 mantissa bits: the top half of an f16. What is too large becomes
    /// infinite.
    ///
    /// ```
    /// use tile_runtime::f8e5m2;
    /// assert_eq!(f8e5m2::from_f32(1.1).to_f32(), 1.0);
    /// assert_eq!(f8e5m2::from_f32(1e9).to_f32(), f32::INFINITY);
    /// ```
    f8e5m2 F8E5M2;
    /// A power of two from 2⁻¹²⁷ to 2¹²⁷, or NaN: the scale of a block of numbers in the OCP's microscaling formats. It has no
    /// sign, no zero and no arithmetic. What is smaller becomes 2⁻¹²⁷, zero too; what is negative or too large becomes NaN.
    ///
    /// ```
    /// use tile_runtime::f8e8m0fnu;
    /// assert_eq!(f8e8m0fnu::from_f32(0.3).to_f32(), 0.25);
    /// assert_eq!(f8e8m0fnu::from_f32(0.0).to_bits(), 0);
    /// assert!(f8e8m0fnu::from_f32(-1.0).to_f32().is_nan());
    /// ```
    f8e8m0fnu F8E8M0FNU;
}

arithmetic!(f8e4m3fn f8e5m2);
