//! Scalar formats. One table; every property of a format is a column of it.

use crate::round::FloatFormat;
use std::fmt;

/// How a format's bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// One truth value.
    Bool,
    /// Two's complement integer.
    Signed,
    /// Unsigned integer.
    Unsigned,
    /// Binary float: IEEE 754, bf16, or 8 bits.
    Float,
    /// Power of two by which others are scaled: no sign, no zero and no arithmetic.
    Scale,
}

macro_rules! dtypes {
    ($($variant:ident $name:literal $rust:literal $bits:literal $class:ident, $doc:literal;)*) => {
        /// The format of a scalar or of a tile's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $(#[doc = $doc] $variant,)* }

        impl DType {
            /// Every format, in table order.
            pub const ALL: &[DType] = &[$(DType::$variant,)*];

            /// The name in IR text.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The name of the Rust type.
            pub const fn rust_name(self) -> &'static str {
                match self { $(DType::$variant => $rust,)* }
            }

            /// Width in bits; `bool` is stored in 8.
            pub const fn bits(self) -> u32 {
                match self { $(DType::$variant => $bits,)* }
            }

            /// What it is, in a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(DType::$variant => $doc,)* }
            }

            /// How the bits are read.
            pub const fn class(self) -> Class {
                match self { $(DType::$variant => Class::$class,)* }
            }
        }
    };
}

dtypes! {
    Bool "bool" "bool" 8 Bool, "Truth value, one byte in memory: 0 or 1.";
    I8 "i8" "i8" 8 Signed, "Signed 8-bit integer.";
    I16 "i16" "i16" 16 Signed, "Signed 16-bit integer.";
    I32 "i32" "i32" 32 Signed, "Signed 32-bit integer.";
    I64 "i64" "i64" 64 Signed, "Signed 64-bit integer.";
    U8 "u8" "u8" 8 Unsigned, "Unsigned 8-bit integer.";
    U16 "u16" "u16" 16 Unsigned, "Unsigned 16-bit integer.";
    U32 "u32" "u32" 32 Unsigned, "Unsigned 32-bit integer.";
    U64 "u64" "u64" 64 Unsigned, "Unsigned 64-bit integer.";
    Index "index" "usize" 64 Unsigned, "Extents, tile indices and loop counters: Rust's `usize`. Never a tile element.";
    F8E4M3FN "f8e4m3fn" "f8e4m3fn" 8 Float, "OCP 8-bit float, 4 exponent bits: up to 448, one NaN, no infinity.";
    F8E5M2 "f8e5m2" "f8e5m2" 8 Float, "OCP 8-bit float, 5 exponent bits: the top half of an f16.";
    F8E8M0FNU "f8e8m0fnu" "f8e8m0fnu" 8 Scale, "OCP microscaling's scale: 2⁻¹²⁷ to 2¹²⁷ or NaN, no sign, no zero. It is moved, selected, converted and scales products; it has no arithmetic.";
    F16 "f16" "f16" 16 Float, "IEEE 754 binary16.";
    BF16 "bf16" "bf16" 16 Float, "bfloat16: the top half of an f32.";
    F32 "f32" "f32" 32 Float, "IEEE 754 binary32.";
    F64 "f64" "f64" 64 Float, "IEEE 754 binary64.";
}

impl DType {
    /// The format with this IR name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.name() == name)
    }

    /// The format of this Rust type name (`usize` is [`DType::Index`]).
    pub fn from_rust_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.rust_name() == name)
    }

    /// Size in memory, in bytes.
    pub const fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    /// How the bits of a float format are shared out; `None` for integers and `bool`.
    pub const fn float_format(self) -> Option<FloatFormat> {
        let (exponent_bits, mantissa_bits, has_infinity) = match self {
            DType::F8E4M3FN => (4, 3, false),
            DType::F8E5M2 => (5, 2, true),
            DType::F8E8M0FNU => (8, 0, false),
            DType::F16 => (5, 10, true),
            DType::BF16 => (8, 7, true),
            DType::F32 => (8, 23, true),
            DType::F64 => (11, 52, true),
            _ => return None,
        };
        let is_signed = matches!(self.class(), Class::Float);
        Some(FloatFormat { exponent_bits, mantissa_bits, has_infinity, is_signed })
    }

    /// A float of fewer bits than f32: computed in f32 and rounded after every op.
    pub const fn is_narrow_float(self) -> bool {
        self.is_float() && self.bits() < 32
    }

    /// A float of 8 bits that has arithmetic, of either kind.
    pub const fn is_float8(self) -> bool {
        matches!(self.class(), Class::Float) && self.bits() == 8
    }

    /// An integer or float: what has arithmetic.
    pub const fn is_number(self) -> bool {
        !matches!(self.class(), Class::Bool | Class::Scale)
    }

    /// A float of any width, or a power of two: a real number. Of these, [`DType::is_number`] says which have arithmetic.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float | Class::Scale)
    }

    /// A signed or unsigned integer (not `bool`).
    pub const fn is_int(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned)
    }

    /// A two's complement integer.
    pub const fn is_signed(self) -> bool {
        matches!(self.class(), Class::Signed)
    }

    /// The smallest and the largest number of an integer format; 0 and 1 for `bool`.
    ///
    /// # Panics
    /// If the format is a float's.
    pub const fn int_range(self) -> (i128, i128) {
        match self.class() {
            Class::Bool => (0, 1),
            Class::Signed => (-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1),
            Class::Unsigned => (0, (1 << self.bits()) - 1),
            Class::Float | Class::Scale => panic!("a float has no range of integers"),
        }
    }

    /// Whether this integer format, or `bool`, has every number of another one.
    ///
    /// # Panics
    /// If one of them is a float's.
    pub const fn contains_integers_of(self, other: DType) -> bool {
        let ((least, greatest), (low, high)) = (self.int_range(), other.int_range());
        least <= low && high <= greatest
    }

    /// Whether a tile may hold elements of this format.
    pub const fn is_element(self) -> bool {
        !matches!(self, DType::Index)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &d in DType::ALL {
            assert_eq!(DType::from_name(d.name()), Some(d));
            assert_eq!(DType::from_rust_name(d.rust_name()), Some(d));
        }
        assert_eq!(DType::from_name("usize"), None);
    }
}
