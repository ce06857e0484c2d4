//! Numbers of formats: rounded, wrapped, and converted between integers and floats.

use crate::dtype::{Class, DType};
use crate::ops::Literal;
use crate::round::{Rounding, round};

/// Rounds to the nearest value of a float format, ties to even; NaN stays as it is.
///
/// ```
/// use tile_ir::{DType, array::round_float};
/// assert_eq!(round_float(DType::BF16, 1.0 + 1.0 / 256.0), 1.0);
/// ```
pub fn round_float(dtype: DType, value: f64) -> f64 {
    match dtype {
        // A conversion would make a signalling NaN quiet.
        DType::F32 if !value.is_nan() => f64::from(value as f32),
        _ => round(dtype, Rounding::NearestEven, value),
    }
}

/// Wraps an integer to the width of a format; `bool` keeps the lowest bit.
///
/// ```
/// use tile_ir::{DType, array::wrap_int};
/// assert_eq!(wrap_int(DType::I8, 128), -128);
/// ```
pub fn wrap_int(dtype: DType, value: i128) -> i128 {
    match dtype.class() {
        Class::Bool => value & 1,
        Class::Signed => {
            let unused = 128 - dtype.bits();
            (value << unused) >> unused
        }
        _ => value & ((1i128 << dtype.bits()) - 1),
    }
}

/// Rust's `as` from a float to an integer format: truncates, saturates, NaN gives 0.
pub(super) fn float_to_int(dtype: DType, value: f64) -> i128 {
    let (low, high) = dtype.int_range();
    (value as i128).clamp(low, high)
}

/// A number as a float format, rounded once.
pub(super) fn literal_to_float(dtype: DType, number: Literal) -> f64 {
    match number {
        Literal::Int(value) => int_to_float(dtype, value),
        Literal::Float(value) => round_float(dtype, value),
    }
}

/// An integer as a float format, rounded once.
///
/// ```
/// use tile_ir::{DType, array::int_to_float};
/// // By way of f64 the 1 is lost, and then the half of two neighbours' distance.
/// assert_eq!(int_to_float(DType::F32, (1 << 53) + (1 << 29) + 1), ((1i64 << 53) + (1 << 30)) as f64);
/// ```
pub fn int_to_float(dtype: DType, value: i128) -> f64 {
    if value.unsigned_abs() < 1 << 53 {
        return round_float(dtype, value as f64);
    }
    match dtype {
        DType::F64 => value as f64,
        DType::F32 => f64::from(value as f32),
        // A 64-bit integer cut to 53 bits, the last one sticky, rounds to 11 or 8 bits as the whole would.
        _ => {
            let sticky = i128::from(value & 0x7ff != 0);
            round_float(dtype, (((value >> 11) | sticky) as f64) * 2048.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_once() {
        // Just above the midpoint of 1 and 1 + 2⁻⁷, by less than f32 can see: nearest is the upper one.
        let above = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(round_float(DType::BF16, above), 1.0 + 2f64.powi(-7));
        assert_eq!(round_float(DType::BF16, -above), -1.0 - 2f64.powi(-7));
        assert_eq!(round_float(DType::BF16, 1.0 + 2f64.powi(-8)), 1.0);
        assert_eq!(round_float(DType::BF16, 1.0 + 3.0 * 2f64.powi(-8)), 1.015625);
        assert_eq!(round_float(DType::BF16, 1e300), f64::INFINITY);
        assert!(round_float(DType::BF16, f64::NAN).is_nan());
        assert_eq!(round_float(DType::F16, 65519.0), 65504.0);
        assert_eq!(round_float(DType::F16, 65520.0), f64::INFINITY);
    }
}
