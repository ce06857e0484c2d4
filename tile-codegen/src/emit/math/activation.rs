//! The error function and activation functions. Each is one op, because it is more accurate than its parts: in
//! the tails a composition overflows or cancels, and f16 and bf16 would be rounded after every part.

use super::exponential::{exp_of_double, exp_shifted};
use super::{Double, Precision, abs, clamp, polynomial, two_product};
use crate::emit::ir::Ir;
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;
use std::f64::consts::FRAC_1_SQRT_2;

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

/// `e^(a²)·erfc a`, for `a >= 0`.
fn scaled_erfc<'c>(ir: &Ir<'c>, p: &Precision<'c>, a: FloatValue<'c>) -> FloatValue<'c> {
    // Beyond 30 erfc vanishes; the bound keeps ∞/∞ away.
    let a = clamp(ir, p, a, 0.0, 30.0);
    let three = p.float(3.0);
    let s = ir.fdiv(ir.fsub(a, three), ir.fadd(a, three));
    let series = if p.wide { polynomial(ir, p, s, &TAIL_F64) } else { polynomial(ir, p, s, &TAIL_F32) };
    ir.fdiv(series, ir.fadd(p.float(1.0), ir.fadd(a, a)))
}

/// `erf x`, for `|x| <= 1`.
fn small_erf<'c>(ir: &Ir<'c>, p: &Precision<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let z = ir.fmul(x, x);
    let series = if p.wide { polynomial(ir, p, z, &SMALL_F64) } else { polynomial(ir, p, z, &SMALL_F32) };
    ir.fadd(x, ir.fmul(x, series))
}

/// The error function: a polynomial up to 1, `1 − erfc |x|` above.
pub(in crate::emit) fn erf<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let magnitude = abs(ir, x);
    // The error of the square matters little: erfc is below 0.16.
    let exponential = super::exp(ir, ir.fneg(ir.fmul(x, x)));
    let complement = ir.fmul(exponential, scaled_erfc(ir, &p, magnitude));
    let large = ir.float_intrinsic("llvm.copysign", &[ir.fsub(p.float(1.0), complement), x]);
    let is_small = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(1.0));
    ir.select_float(is_small, small_erf(ir, &p, x), large)
}

/// `x·Φ(x)` with the distribution function of the normal distribution. `Φ(−|x|) = e^(−x²/2)·scaled_erfc/2`, where
/// the exponent is exact: its error would be multiplied by itself. Near zero `Φ(x) = (1 + erf(x/√2))/2`.
pub(in crate::emit) fn gelu<'c>(ir: &Ir<'c>, x: FloatValue<'c>) -> FloatValue<'c> {
    let p = Precision::of(ir, x);
    let square = two_product(ir, &p, x, x);
    let half = |value| ir.fmul(value, p.float(-0.5));
    let exponential = exp_of_double(ir, &p, Double { head: half(square.head), tail: half(square.tail) });
    let argument = ir.fmul(x, p.float(FRAC_1_SQRT_2));
    let scaled = ir.fmul(p.float(0.5), scaled_erfc(ir, &p, abs(ir, argument)));
    // The exponential last: it may be subnormal.
    let negative = ir.fmul(ir.fmul(x, scaled), exponential);
    let positive = ir.fmul(x, ir.fsub(p.float(1.0), ir.fmul(scaled, exponential)));
    let is_negative = ir.fcmp(FloatPredicate::OLT, x, p.float(0.0));
    let tail = ir.select_float(is_negative, negative, positive);
    let erf = ir.fmul(p.float(0.5), small_erf(ir, &p, argument));
    let middle = ir.fmul(x, ir.fadd(p.float(0.5), erf));
    let is_small = ir.fcmp(FloatPredicate::OLT, abs(ir, argument), p.float(0.5));
    let result = ir.select_float(is_small, middle, tail);
    let lowest = ir.fcmp(FloatPredicate::OEQ, x, p.float(f64::NEG_INFINITY));
    ir.select_float(lowest, p.float(-0.0), result)
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
