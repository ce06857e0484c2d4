//! Functions that the standard library doesn't have, or not as accurately, in f64, for the op table: the error function,
//! activation functions and the inverses of hyperbolic ones.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2};

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
    0.5 * FRAC_2_SQRT_PI / fraction
}

/// `1 − erf x`: near zero as it is written, elsewhere from the tail.
pub(super) fn erfc(x: f64) -> f64 {
    if x.is_nan() || x.abs() < 0.5 {
        return 1.0 - erf(x);
    }
    // It vanishes before 30. e^(−a²) without the error of a², which the exponential would multiply.
    let a = x.abs().min(30.0);
    let head = f64::from(a as f32);
    let of_head = scaled_erfc(a) * (-head * head).exp();
    let tail = of_head + of_head * ((head - a) * (head + a)).exp_m1();
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// `ln(x + √(x² + 1))`, of what that is more than 1.
pub(super) fn asinh(x: f64) -> f64 {
    let a = x.abs();
    // Where x² + 1 is x².
    if a > f64::powi(2.0, 28) {
        return (a.ln() + LN_2).copysign(x);
    }
    let square = a * a;
    (a + square / (1.0 + (1.0 + square).sqrt())).ln_1p().copysign(x)
}

/// `ln(x + √(x² − 1))`, of what `x` is more than 1: next to 1 the standard library's loses half of the digits.
pub(super) fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    if x < 1.0 {
        return f64::NAN;
    }
    if x > f64::powi(2.0, 28) {
        return x.ln() + LN_2;
    }
    (t + (t * (t + 2.0)).sqrt()).ln_1p()
}

/// `½·ln((1 + x)/(1 − x))`.
pub(super) fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
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
            (erfc, 0.25, 0.723_673_609_831_763_1),
            (erfc, -0.75, 1.711_155_633_653_515_2),
            (erfc, 0.5, 0.479_500_122_186_953_5),
            (erfc, 2.5, 0.000_406_952_017_444_958_9),
            (erfc, -5.5, 1.999_999_999_999_992_7),
            (erfc, 26.0, 5.663_192_408_856_143e-296),
            (asinh, 1e-300, 1e-300),
            (asinh, -0.375, -0.366_724_604_230_136_75),
            (asinh, 2.5, 1.647_231_146_371_095_8),
            (asinh, 1e300, 691.468_675_078_773_7),
            (acosh, 1.000_000_000_1, 1.414_213_620_867_586_2e-5),
            (acosh, 1.75, 1.158_810_360_429_947),
            (acosh, 3.5, 1.924_847_300_238_413_9),
            (acosh, 1e300, 691.468_675_078_773_7),
            (atanh, 1e-300, 1e-300),
            (atanh, -0.375, -0.394_228_680_182_135_1),
            (atanh, 0.75, 0.972_955_074_527_656_6),
            (atanh, 0.999_999_9, 8.405_621_391_022_31),
        ] as [(fn(f64) -> f64, f64, f64); 43]
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
        for f in [erf, erfc, gelu, sigmoid, silu, asinh, acosh, atanh] {
            assert!(f(f64::NAN).is_nan());
        }
        assert_eq!((erfc(f64::NEG_INFINITY), erfc(0.0), erfc(f64::INFINITY)), (2.0, 1.0, 0.0));
        assert_eq!((asinh(f64::NEG_INFINITY), acosh(f64::INFINITY)), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!((acosh(1.0).to_bits(), atanh(1.0), atanh(-1.0)), (0, f64::INFINITY, f64::NEG_INFINITY));
        assert!(
            [acosh(0.5), acosh(-2.0), acosh(f64::NEG_INFINITY), atanh(1.5), atanh(f64::INFINITY)]
                .iter()
                .all(|x| x.is_nan())
        );
        for f in [erf, gelu, silu, asinh, atanh] {
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
