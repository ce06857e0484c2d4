//! The error function and activation functions. Each is one op, because it is more accurate than its parts: in
//! the tails a composition overflows or cancels, and f16 and bf16 would be rounded after every part.

use super::exponential::{exp_shifted, exp_without_overflow, precise_exp};
use super::{Precision, abs, bounded_magnitude, clamp, polynomial, reciprocal, two_product};
use crate::emit::ir::Ir;
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;

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
/// `(a + 2)·e^(a²)·erfc a` in `s = (a − 2)/(a + 2)`, for `a` from 0 to 10.1, where erfc vanishes; the relative error is
/// below 3.6e-9. The variable is that of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x",
/// 1981; with this factor one reciprocal serves both.
const TAIL_F32: [f64; 11] = [
    1.021_582_708_78e0,
    -6.871_606_959_81e-1,
    2.794_717_631_41e-1,
    -3.644_181_680_28e-2,
    -2.150_563_673_64e-2,
    6.476_166_770_91e-3,
    3.062_360_948_55e-3,
    -8.330_149_994_48e-4,
    -5.925_977_087_07e-4,
    4.799_668_832_08e-5,
    7.004_429_107_16e-5,
];
/// The same for `a` from 0 to 28.3, with an error below 2e-17, and 1.1e-16 for the rounded coefficients.
const TAIL_F64: [f64; 25] = [
    1.021_582_705_242_023e0,
    -6.871_606_844_138_106e-1,
    2.794_720_925_560_489_3e-1,
    -3.644_223_150_687_013_5e-2,
    -2.151_066_188_912_839e-2,
    6.479_185_067_343_45e-3,
    3.090_612_050_616_149e-3,
    -8.372_960_548_396_864e-4,
    -6.630_733_988_540_25e-4,
    3.437_135_700_018_571_4e-5,
    1.444_699_604_126_852_1e-4,
    3.414_938_321_564_497e-5,
    -2.169_244_056_087_872_8e-5,
    -1.612_277_212_717_019e-5,
    -1.137_906_535_945_510_3e-6,
    3.648_171_352_503_373_4e-6,
    2.030_036_053_499_655e-6,
    -3.955_859_565_847_698_5e-9,
    -6.157_658_315_498_153e-7,
    -3.209_533_711_884_079e-7,
    4.453_946_970_658_045e-8,
    1.124_966_661_758_070_9e-7,
    2.481_690_469_708_920_5e-8,
    -1.504_473_154_628_257_7e-8,
    -6.026_649_864_724_41e-9,
];

/// `scale·(a + 2)·e^(a²)·erfc a` for `a` from 0 to where erfc vanishes, from `b` and `r` with `b·r = a/(a + 2)`: then
/// `s = 2b·r − 1` is right also near 0.
pub(super) fn tail_series<'c>(
    ir: &Ir<'c>,
    p: &Precision<'c>,
    [b, r]: [FloatValue<'c>; 2],
    scale: f64,
) -> FloatValue<'c> {
    let s = ir.mul_add(ir.fadd(b, b), r, p.float(-1.0));
    let coefficients: &[f64] = if p.wide { &TAIL_F64 } else { &TAIL_F32 };
    let scaled: Vec<f64> = coefficients.iter().map(|coefficient| scale * coefficient).collect();
    polynomial(ir, p, s, &scaled)
}

/// `erf x / x − 1` of `x²`, for `|x| <= 1`.
pub(super) fn small_erf_series<'c>(ir: &Ir<'c>, p: &Precision<'c>, square: FloatValue<'c>) -> FloatValue<'c> {
    if p.wide { polynomial(ir, p, square, &SMALL_F64) } else { polynomial(ir, p, square, &SMALL_F32) }
}

/// The error function: a polynomial up to 1, `1 − erfc |x|` above.
pub(in crate::emit) fn erf<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = abs(ir, x);
    // The error of the square matters little: erfc is below 0.16, and vanishes long before the bound.
    let exponential = super::exp(ir, ir.fneg(ir.fmul(x, x)));
    let a = bounded_magnitude(ir, &p, x, 30.0);
    let r = reciprocal(ir, &p, ir.fadd(a, p.float(2.0)));
    let series = tail_series(ir, &p, [a, r], 1.0);
    let large = ir.mul_add(ir.fneg(ir.fmul(series, r)), exponential, p.float(1.0));
    let large = ir.float_intrinsic("llvm.copysign", &[large, x]);
    let is_small = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(1.0));
    let small = ir.mul_add(x, small_erf_series(ir, &p, ir.fmul(x, x)), x);
    ir.select_float(is_small, small, large)
}

/// `1 − erf x`: the series of erf up to a half, `e^(−a²)·series/(a + 2)` of `a = |x|` above, which is taken from 2 on the left.
/// The square is exact: the power would multiply its error.
pub(in crate::emit) fn erfc<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    // Where it vanishes, and the power isn't far below.
    let a = bounded_magnitude(ir, &p, x, if p.wide { 27.25 } else { 10.1 });
    let exponential = exp_without_overflow(ir, &p, two_product(ir, &p, ir.fneg(a), a));
    let r = reciprocal(ir, &p, ir.fadd(a, p.float(2.0)));
    let tail = ir.fmul(ir.fmul(tail_series(ir, &p, [a, r], 1.0), r), exponential);
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    let large = ir.select_float(is_negative, ir.fsub(p.float(2.0), tail), tail);
    let erf = ir.mul_add(x, small_erf_series(ir, &p, ir.fmul(x, x)), x);
    // NaN isn't large: it comes out of the series.
    let is_large = ir.fcmp(FloatPredicate::OGE, abs(ir, x), p.float(0.5));
    ir.select_float(is_large, large, ir.fsub(p.float(1.0), erf))
}

/// `1 / (1 + e^−x)`, from `e^−|x|`, which doesn't overflow.
pub(in crate::emit) fn sigmoid<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let one = p.float(1.0);
    let exponential = precise_exp(ir, &p, ir.fneg(abs(ir, x)));
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
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    // One division, which on GPUs is as long as all the rest.
    let numerator = ir.select_float(is_negative, ir.fmul(clamped, scaled), x);
    let quotient = ir.fdiv(numerator, divisor);
    ir.select_float(is_negative, ir.fmul(quotient, back), quotient)
}
