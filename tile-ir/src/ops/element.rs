//! The value of leaf ops on one element, as far as it takes more than an expression in [the table](super::elementwise).
//!
//! Integers are evaluated in `i128`, before wrapping to the format; floats in `f64`, before rounding to it.

use crate::dtype::DType;

pub(super) fn no_int(_: i128, _: DType) -> i128 {
    unreachable!("verified: a float-only op has float operands")
}

pub(super) fn no_int2(_: i128, _: i128, _: DType) -> i128 {
    unreachable!("verified: a float-only op has float operands")
}

pub(super) fn no_float(_: f64) -> f64 {
    unreachable!("verified: an integer-only op has integer operands")
}

pub(super) fn no_float2(_: f64, _: f64) -> f64 {
    unreachable!("verified: an integer-only op has integer operands")
}

/// The bits of an integer, without sign extension.
pub(super) fn pattern(x: i128, dtype: DType) -> u64 {
    (x & ((1 << dtype.bits()) - 1)) as u64
}

pub(super) fn round_tf32(x: f64) -> f64 {
    let bits = (x as f32).to_bits();
    if x.is_nan() { x } else { f64::from(f32::from_bits((bits + 0x1000) & !0x1fff)) }
}

/// `a / b` rounded down, 0 where `b` is 0.
pub(super) fn div_floor(a: i128, b: i128, dtype: DType) -> i128 {
    let inexact = truncating_rem(a, b, dtype) != 0 && b != 0;
    truncating_div(a, b, dtype) - i128::from(inexact && (a < 0) != (b < 0))
}

/// `a / b` rounded up, 0 where `b` is 0.
pub(super) fn div_ceil(a: i128, b: i128, dtype: DType) -> i128 {
    let inexact = truncating_rem(a, b, dtype) != 0 && b != 0;
    truncating_div(a, b, dtype) + i128::from(inexact && (a < 0) == (b < 0))
}

/// The remainder that isn't negative; `a` where `b` is 0.
pub(super) fn rem_euclid(a: i128, b: i128, _: DType) -> i128 {
    if b == 0 { a } else { a.rem_euclid(b) }
}

/// `a / b` truncated, 0 where `b` is 0.
pub(super) fn truncating_div(a: i128, b: i128, _: DType) -> i128 {
    if b == 0 { 0 } else { a / b }
}

/// The remainder of [`truncating_div`]: `a` where `b` is 0.
pub(super) fn truncating_rem(a: i128, b: i128, _: DType) -> i128 {
    if b == 0 { a } else { a % b }
}

/// Shift amounts are taken modulo the width, as Rust's `wrapping_shl` does.
pub(super) fn shift_amount(b: i128, dtype: DType) -> u32 {
    b.rem_euclid(i128::from(dtype.bits())) as u32
}

/// The bits moved up, those that leave at the top coming back below.
pub(super) fn rotate_left(a: i128, b: i128, dtype: DType) -> i128 {
    let (bits, amount) = (i128::from(pattern(a, dtype)), shift_amount(b, dtype));
    (bits << amount) | (bits >> (dtype.bits() - amount))
}

/// The bits moved down, those that leave at the bottom coming back above.
pub(super) fn rotate_right(a: i128, b: i128, dtype: DType) -> i128 {
    rotate_left(a, -b, dtype)
}

/// The nearest integer that the format has.
pub(super) fn saturate(value: i128, dtype: DType) -> i128 {
    let (low, high) = dtype.int_range();
    value.clamp(low, high)
}

/// The product's bits above the format's width.
pub(super) fn mul_hi(a: i128, b: i128, dtype: DType) -> i128 {
    if dtype.is_signed() {
        (a * b) >> dtype.bits()
    } else {
        ((a as u128 * b as u128) >> dtype.bits()) as i128
    }
}

/// IEEE 754-2019 `maximumNumber`: a NaN operand is ignored, −0 < +0.
pub(super) fn maximum_number(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else {
        ordered_max(a, b)
    }
}

/// IEEE 754-2019 `maximum`: a NaN operand gives NaN, −0 < +0.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { ordered_max(a, b) }
}

/// IEEE 754 `pow`. The standard library's gives NaN wherever an operand is a signalling one.
pub(super) fn powf(a: f64, b: f64) -> f64 {
    quiet(a).powf(quiet(b))
}

/// IEEE 754 `hypot`, of signalling NaN as of others.
pub(super) fn hypot(a: f64, b: f64) -> f64 {
    quiet(a).hypot(quiet(b))
}

fn quiet(x: f64) -> f64 {
    if x.is_nan() { f64::NAN } else { x }
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

#[cfg(test)]
mod tests {
    use super::super::{BinaryOp, UnaryOp};
    use crate::dtype::DType;

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
        let signalling = f64::from_bits(0x7ff4_0000_0000_0000);
        assert_eq!(BinaryOp::Powf.float()(1.0, signalling), 1.0);
        assert_eq!(BinaryOp::Powf.float()(signalling, 0.0), 1.0);
        assert_eq!(BinaryOp::Hypot.float()(signalling, f64::INFINITY), f64::INFINITY);
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
