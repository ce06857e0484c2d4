//! `a·b + c` with one rounding.

use crate::dtype::DType;
use crate::round::{Rounding, round};

/// The nearest number of a format to `a·b + c`, computed as if exactly. Operands are numbers of the format.
pub(crate) fn mul_add(dtype: DType, a: f64, b: f64, c: f64) -> f64 {
    if dtype == DType::F64 {
        return a.mul_add(b, c);
    }
    // The product of two f32 is exact in f64, and a sum that is rounded to odd can be rounded again.
    round(dtype, Rounding::NearestEven, add_to_odd(a * b, c))
}

/// `a + b`, and if that isn't a number of the format, the neighbour whose last bit is 1: the bit says that
/// something was cut off (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums").
fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let kept = sum - a;
    let error = (a - (sum - kept)) + (b - kept);
    if !sum.is_finite() || error == 0.0 || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let toward_infinity = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if toward_infinity { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rounding_not_two() {
        let a = 1.0 + 2f64.powi(-12);
        let c = -(1.0 + 2f64.powi(-11));
        assert_eq!(mul_add(DType::F32, a, a, c), 2f64.powi(-24));
        for (a, b, c) in
            [(3.0f32, 1.0 / 3.0, -1.0), (1e20, 1e20, -1e30), (1.5e-30, 1.5e-10, 1e-41), (-7.25, 3.5e-9, 2.0)]
        {
            let expected = f64::from(a.mul_add(b, c));
            assert_eq!(mul_add(DType::F32, a.into(), b.into(), c.into()), expected, "{a} {b} {c}");
        }
        // Halfway between two f16 but for the product's last bit.
        let tie = 1.0 + 2f64.powi(-11);
        let below = 2f64.powi(-24);
        assert_eq!(mul_add(DType::F16, below, -below, tie), 1.0);
        assert_eq!(mul_add(DType::F16, below, below, tie), 1.0 + 2f64.powi(-10));
        assert!(mul_add(DType::F32, f64::INFINITY, 0.0, 1.0).is_nan());
    }
}
