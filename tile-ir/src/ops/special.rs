//! Functions that the standard library doesn't have, in f64, for the op table: the error function and
//! activation functions.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// The error function: its Maclaurin series up to 1 (Abramowitz and Stegun 7.1.5), `1 − erfc |x|` above.
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() <= 1.0 {
        return x + x * erf_slope_below_one(x * x);
    }
    (1.0 - (-x * x).exp() * scaled_erfc(x.abs())).copysign(x)
}

/// `erf x / x − 1` for `x² = square <= 1`.
fn erf_slope_below_one(square: f64) -> f64 {
    // 25 terms: the next is below 1e-27.
    let terms = (1..=25).scan(1.0, |power, n| {
        *power *= -square / f64::from(n);
        Some(*power / f64::from(2 * n + 1))
    });
    let terms: Vec<f64> = terms.collect();
    let sum: f64 = terms.iter().rev().sum();
    // 2/√π − 1 and what the nearest f64 lacks of 2/√π.
    FRAC_2_SQRT_PI * sum + ((FRAC_2_SQRT_PI - 1.0) + 1.533_545_961_316_588e-17)
}

/// `e^(a²)·erfc a` for `a >= 0`: `1 − erf a` below a half, where little cancels; above, the continued fraction
/// (Abramowitz and Stegun 7.1.14) from inside out, with more terms the smaller `a` is.
fn scaled_erfc(a: f64) -> f64 {
    if a < 0.5 {
        return (a * a).exp() * (1.0 - erf(a));
    }
    let terms = 20 + (400.0 / (a * a)) as u32;
    let fraction = (1..=terms).rev().fold(a, |inner, n| a + 0.5 * f64::from(n) / inner);
    1.0 / (PI.sqrt() * fraction)
}

/// `x·Φ(x)` with the distribution function of the normal distribution.
pub(super) fn gelu(x: f64) -> f64 {
    // Where Φ is 1, or below every number.
    if x > 40.0 {
        return x;
    }
    if x < -40.0 {
        return -0.0;
    }
    // e^(−x²/2) without the error of x², which the exponential would multiply.
    let head = f64::from(x as f32);
    let (large, small) = ((-0.5 * head * head).exp(), (-0.5 * (x - head) * (x + head)).exp());
    let scaled = 0.5 * scaled_erfc(x.abs() * FRAC_1_SQRT_2) * small;
    if x < 0.0 { x * scaled * large } else { x * (1.0 - scaled * large) }
}

/// `1 / (1 + e^−x)`.
pub(super) fn sigmoid(x: f64) -> f64 {
    let exponential = (-x.abs()).exp();
    if x < 0.0 { exponential / (1.0 + exponential) } else { 1.0 / (1.0 + exponential) }
}

/// `x / (1 + e^−x)`.
pub(super) fn silu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        return -0.0;
    }
    if x >= 0.0 {
        return x / (1.0 + (-x).exp());
    }
    // The square root of the exponential isn't subnormal where the result isn't zero.
    let root = (0.5 * x).exp();
    root * (x / (1.0 + root * root)) * root
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with mpmath in 40 digits.
    #[test]
    fn values_are_those_of_an_independent_computation() {
        for (function, x, expected) in [
            (erf, 1e-300, 1.128_379_167_095_512_6e-300),
            (erf, 0.25, 2.763_263_901_682_369_6e-1),
            (erf, -0.75, -7.111_556_336_535_151e-1),
            (erf, 0.9375, 8.151_024_010_343_998e-1),
            (erf, 1.0, 8.427_007_929_497_149e-1),
            (erf, 1.0625, 8.670_582_694_349_528e-1),
            (erf, 2.5, 9.995_930_479_825_55e-1),
            (erf, -5.5, -9.999_999_999_999_927e-1),
            (gelu, 0.125, 6.871_727_810_376_412e-2),
            (gelu, -0.125, -5.628_272_189_623_588_5e-2),
            (gelu, -0.625, -1.662_409_556_554_378_4e-1),
            (gelu, -1.0, -1.586_552_539_314_570_5e-1),
            (gelu, 1.5, 1.399_789_198_096_713e0),
            (gelu, -3.25, -1.875_331_387_769_992_8e-3),
            (gelu, -12.0, -2.131_778_534_493_214_7e-32),
            (gelu, -30.1, -7.292_228_326_137_134e-198),
            (sigmoid, -700.0, 9.859_676_543_759_77e-305),
            (sigmoid, -3.5, 2.931_223_075_135_632e-2),
            (sigmoid, 0.5, 6.224_593_312_018_546e-1),
            (sigmoid, 30.0, 9.999_999_999_999_064e-1),
            (silu, -745.0, -2.105e-321),
            (silu, -3.5, -1.025_928_076_297_471_1e-1),
            (silu, -0.25, -1.094_558_747_785_504_7e-1),
            (silu, 0.5, 3.112_296_656_009_273e-1),
            (silu, 30.0, 2.999_999_999_999_719_3e1),
        ] as [(fn(f64) -> f64, f64, f64); 25]
        {
            let error = ((function(x) - expected) / expected).abs();
            assert!(
                error < 6.0 * f64::EPSILON / 2.0,
                "{:e} at {x}, not {expected:e}: {error:e}",
                function(x)
            );
        }
    }

    #[test]
    fn edges() {
        for f in [erf, gelu, sigmoid, silu] {
            assert!(f(f64::NAN).is_nan());
        }
        for f in [erf, gelu, silu] {
            assert_eq!(f(-0.0).to_bits(), (-0.0f64).to_bits());
        }
        assert_eq!((erf(f64::INFINITY), erf(f64::NEG_INFINITY)), (1.0, -1.0));
        assert_eq!((sigmoid(f64::INFINITY), sigmoid(f64::NEG_INFINITY)), (1.0, 0.0));
        for f in [gelu, silu] {
            assert_eq!(f(f64::INFINITY), f64::INFINITY);
            assert_eq!(f(f64::NEG_INFINITY).to_bits(), (-0.0f64).to_bits());
        }
    }
}
