//! The error function and activation functions. Each is one op, because it is more accurate than its parts: in
//! the tails a composition overflows or cancels, and f16 and bf16 would be rounded after every part.

use super::exponential::{exp_of_finite, exp_shifted};
use super::{Precision, abs, clamp, polynomial, reciprocal, two_product};
use crate::emit::ir::Ir;
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// `erf x / x − 1` in `x²`, for `x <= 1`; the error of erf is below 2e-9.
const SMALL_F32: [f64; 7] = [
    1.283_791_659_14e-1,
    -3.761_262_713_64e-1,
    1.128_360_017_96e-1,
    -2.685_444_467_84e-2,
    5.189_535_424_59e-3,
    -8.020_841_518_25e-4,
    7.889_119_072_09e-5,
];
/// The same with an error below 3e-21.
const SMALL_F64: [f64; 14] = [
    1.283_791_670_955_126e-1,
    -3.761_263_890_318_375_4e-1,
    1.128_379_167_095_512e-1,
    -2.686_617_064_512_986_8e-2,
    5.223_977_625_423_609e-3,
    -8.548_327_021_955_961e-4,
    1.205_533_290_381_026e-4,
    -1.492_564_759_444_207_8e-5,
    1.646_204_597_967_878_8e-6,
    -1.636_464_954_241_592_7e-7,
    1.479_246_958_649_689e-8,
    -1.216_496_841_290_798_3e-9,
    8.710_465_083_973_258e-11,
    -4.233_129_792_026_111e-12,
];
/// `(1 + 2a)·e^(a²)·erfc a` in `s = (a − 3)/(a + 3)`, for `a` from 0 to 10.2, where erfc vanishes; the error is
/// below 2e-9. Both the function and the variable are of Shepherd and Laframboise, "Chebyshev approximation of
/// (1 + 2x) exp(x²) erfc x", 1981: the function is nearly constant, so that errors of `s` hardly matter
/// unless `a` is near 0.
const TAIL_F32: [f64; 11] = [
    1.253_008_059_22e0,
    -1.356_211_401_31e-1,
    -4.756_240_967_26e-2,
    1.296_464_336_31e-1,
    -1.192_707_952_36e-1,
    6.829_575_052_89e-2,
    -2.379_853_940_56e-2,
    2.566_559_182_45e-3,
    2.003_353_447_84e-3,
    -7.751_149_543_59e-4,
    -2.671_781_715_90e-4,
];
/// The same for `a` from 0 to 28, with an error below 3e-17.
const TAIL_F64: [f64; 23] = [
    1.253_008_058_269_729_6e0,
    -1.356_211_061_245_805_3e-1,
    -4.756_229_435_344_914e-2,
    1.296_451_587_026_905_3e-1,
    -1.192_736_634_153_940_3e-1,
    6.830_802_734_628_834e-2,
    -2.377_051_491_673_261_3e-2,
    2.529_391_781_008_621_7e-3,
    1.888_690_335_181_533e-3,
    -7.798_319_773_512_342e-4,
    -1.051_596_106_749_979_7e-4,
    1.250_978_451_333_223e-4,
    4.948_511_203_619_544e-6,
    -2.009_565_319_229_699e-5,
    -7.282_015_605_181_643e-7,
    3.462_022_132_024_599e-6,
    3.494_430_595_483_008e-7,
    -6.025_529_836_814_688e-7,
    -1.309_573_001_551_630_4e-7,
    9.015_772_993_501_946e-8,
    3.243_177_385_939_984e-8,
    -7.992_115_212_482_038e-9,
    -3.981_076_982_219_032e-9,
];

/// `(1 + 2a)·e^(a²)·erfc a` for `a` from 0 to where erfc vanishes, of `a + 3`.
fn tail_series<'c>(ir: &Ir<'c>, p: &Precision<'c>, a_plus_3: FloatValue<'c>) -> FloatValue<'c> {
    let s = ir.mul_add(reciprocal(ir, p, a_plus_3), p.float(-6.0), p.float(1.0));
    if p.wide { polynomial(ir, p, s, &TAIL_F64) } else { polynomial(ir, p, s, &TAIL_F32) }
}

/// `|x|`, but at most the bound. Of NaN it is the bound.
fn bounded_magnitude<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>, bound: f64) -> FloatValue<'c> {
    let (magnitude, bound) = (abs(ir, x), p.float(bound));
    if ir.features.extrema {
        return ir.float_intrinsic("llvm.minimumnum", &[magnitude, bound]);
    }
    ir.select_float(ir.fcmp(FloatPredicate::OLT, magnitude, bound), magnitude, bound)
}

/// `erf x / x − 1` of `x²`, for `|x| <= 1`.
fn small_erf_series<'c>(ir: &Ir<'c>, p: &Precision<'c>, square: FloatValue<'c>) -> FloatValue<'c> {
    if p.wide { polynomial(ir, p, square, &SMALL_F64) } else { polynomial(ir, p, square, &SMALL_F32) }
}

/// The error function: a polynomial up to 1, `1 − erfc |x|` above.
pub(in crate::emit) fn erf<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = abs(ir, x);
    // The error of the square matters little: erfc is below 0.16, and vanishes long before the bound.
    let exponential = super::exp(ir, ir.fneg(ir.fmul(x, x)));
    let a = bounded_magnitude(ir, &p, x, 30.0);
    let series = tail_series(ir, &p, ir.fadd(a, p.float(3.0)));
    let scaled = ir.fmul(series, reciprocal(ir, &p, ir.mul_add(a, p.float(2.0), p.float(1.0))));
    let large = ir.fsub(p.float(1.0), ir.fmul(exponential, scaled));
    let large = ir.float_intrinsic("llvm.copysign", &[large, x]);
    let is_small = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(1.0));
    let small = ir.mul_add(x, small_erf_series(ir, &p, ir.fmul(x, x)), x);
    ir.select_float(is_small, small, large)
}

/// `x·Φ(x)` with the distribution function of the normal distribution. Near zero `Φ(x) = (1 + erf(x/√2))/2`.
pub(in crate::emit) fn gelu<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let argument = ir.fmul(x, p.float(FRAC_1_SQRT_2));
    let half = ir.fmul(argument, p.float(0.5));
    let square = ir.fmul(argument, argument);
    let erf = ir.mul_add(half, small_erf_series(ir, &p, square), half);
    let middle = ir.fmul(x, ir.fadd(p.float(0.5), erf));
    // NaN isn't large: it comes out of the middle.
    let is_large = ir.fcmp(FloatPredicate::OGE, abs(ir, argument), p.float(0.5));
    ir.select_float(is_large, gelu_tail(ir, &p, x), middle)
}

/// `max(x, −0) − |x|·Φ(−|x|)`, with `Φ(−m) = e^(−m²/2)·series/(2 + 4a)` for `a = m/√2`. The exponent is exact: its error
/// would be multiplied by itself. `m/(2 + 4a)` is `c·(1 − 1/(1 + √2·m))` with `c = 1/√8`, to which the error of the
/// reciprocal adds little. The exponential comes last: it may be subnormal.
fn gelu_tail<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    // Beyond the bound `Φ(−m)` vanishes.
    let m = bounded_magnitude(ir, p, x, if p.wide { 40.0 } else { 15.0 });
    let exponent = two_product(ir, p, ir.fmul(m, p.float(-0.5)), m);
    let exponential = exp_of_finite(ir, p, exponent);
    let series = tail_series(ir, p, ir.mul_add(m, p.float(FRAC_1_SQRT_2), p.float(3.0)));
    let w = reciprocal(ir, p, ir.mul_add(m, p.float(SQRT_2), p.float(1.0)));
    let c = 0.5 * FRAC_1_SQRT_2;
    let factor = ir.fmul(series, ir.mul_add(w, p.float(-c), p.float(c)));
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    let whole = ir.select_float(is_negative, p.float(-0.0), x);
    ir.mul_add(ir.fneg(factor), exponential, whole)
}

/// `1 / (1 + e^−x)`, from `e^−|x|`, which doesn't overflow.
pub(in crate::emit) fn sigmoid<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let one = p.float(1.0);
    let exponential = super::exp(ir, ir.fneg(abs(ir, x)));
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    let numerator = ir.select_float(is_negative, exponential, one);
    ir.fdiv(numerator, ir.fadd(one, exponential))
}

/// `x / (1 + e^−x)`, from `e^−|x|`. That is kept scaled up until it is multiplied by `x`, because where it is
/// subnormal the product need not be.
pub(in crate::emit) fn silu<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    // Below these bounds the result is −0.
    let (lowest, shift) = if p.wide { (-760.0, 128) } else { (-112.0, 64) };
    let clamped = clamp(ir, &p, x, lowest, f64::INFINITY);
    let exponent = clamp(ir, &p, ir.fneg(abs(ir, x)), lowest, 0.0);
    let scaled = exp_shifted(ir, &p, exponent, shift);
    let back = p.float(f64::powi(2.0, -(shift as i32)));
    let divisor = ir.fadd(p.float(1.0), ir.fmul(scaled, back));
    let negative = ir.fmul(ir.fdiv(ir.fmul(clamped, scaled), divisor), back);
    let positive = ir.fdiv(x, divisor);
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    ir.select_float(is_negative, negative, positive)
}
