//! Angles reduced to an eighth of a turn, exactly, for every number of the format.
//!
//! Payne and Hanek, "Radian reduction for trigonometric functions", 1983: of the product of `|x|` with 2/π only
//! the bits count that are not whole turns, so an integer product of the mantissa with a window of the bits of
//! 2/π gives the quadrant and the fraction, however large `x` is. The window is chosen by selects instead of
//! loads, so that there is neither a branch nor a table in memory. With words of the format's width the
//! fraction has 62 (126) bits; the closest that an f32 (f64) comes to a multiple of π/2 is 2⁻²⁹ (2⁻⁶¹).

use super::{Double, Precision, RIGHT_ANGLE, fast_two_sum, two_product};
use crate::emit::ir::{Ir, float_bits};
use inkwell::values::{FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use std::f64::consts::FRAC_PI_4;

/// The first 1216 bits of 2/π after the binary point.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// An angle as `quadrant·π/2 + r`, with `|r| <= π/4` and the quadrant modulo 4.
pub(super) struct Reduced<'c> {
    pub(super) quadrant: IntValue<'c>,
    pub(super) r: Double<'c>,
}

/// Reduces `magnitude`, which is not negative. Of ∞ and NaN `r` is NaN.
pub(super) fn reduce<'c>(ir: &Ir<'c>, p: &Precision<'c>, magnitude: FloatValue<'c>) -> Reduced<'c> {
    let width = i64::from(float_bits(p.ty));
    let product = fraction_of_turn(ir, p, magnitude);
    // In units of a quadrant, two bits are the integer part.
    let wide = product.get_type();
    let point = wide.const_int(2 * width as u64 - 2, false);
    let half = ir.shl(wide.const_int(1, false), wide.const_int(2 * width as u64 - 3, false));
    let quadrant = ir.lshr(ir.add(product, half), point);
    let fraction = ir.sub(product, ir.shl(quadrant, point));
    let r = radians(ir, p, fraction);

    let (zero, small) = (p.float(0.0), ir.fcmp(FloatPredicate::OLT, magnitude, p.float(FRAC_PI_4)));
    let finite = ir.fcmp(FloatPredicate::OLT, magnitude, p.float(f64::INFINITY));
    let head = ir.select_float(small, magnitude, r.head);
    let head = ir.select_float(finite, head, p.float(f64::NAN));
    let quadrant = ir.zext_or_trunc(quadrant, width as u32);
    Reduced {
        quadrant: ir.select_int(small, p.int(ir, 0), quadrant),
        r: Double { head, tail: ir.select_float(small, zero, r.tail) },
    }
}

/// `magnitude·(2/π)/4` modulo 1, as an integer of twice the format's width, the point before its first bit.
/// Meaningless below π/4.
fn fraction_of_turn<'c>(ir: &Ir<'c>, p: &Precision<'c>, magnitude: FloatValue<'c>) -> IntValue<'c> {
    let width = i64::from(float_bits(p.ty));
    let bits = ir.bits(magnitude);
    let implicit = 1i64 << p.mantissa_bits;
    let mantissa = ir.or(ir.and(bits, p.int(ir, implicit - 1)), p.int(ir, implicit));
    let field = ir.lshr(bits, p.int(ir, p.mantissa_bits));
    // Bit j of 2/π times the mantissa's last bit weighs 2^(exponent − mantissa_bits − j): whole turns end
    // where that is 4. One word of zeros stands before the first bit.
    let start = ir.add(field, p.int(ir, width - p.mantissa_bits - 2 - p.bias));
    let words = window(ir, p, start);
    let doubled = |x: IntValue<'c>| ir.zext_or_trunc(x, 2 * width as u32);
    let shift = doubled(p.int(ir, width));
    let times = |word: IntValue<'c>| ir.mul(doubled(word), doubled(mantissa));
    let high = ir.shl(doubled(ir.mul(words[0], mantissa)), shift);
    ir.add(ir.add(high, times(words[1])), ir.lshr(times(words[2]), shift))
}

/// Three words of `0 2/π` from bit `start` on.
fn window<'c>(ir: &Ir<'c>, p: &Precision<'c>, start: IntValue<'c>) -> [IntValue<'c>; 3] {
    let width = i64::from(float_bits(p.ty));
    let halves = |word: &u64| if p.wide { vec![*word] } else { vec![word >> 32, word & 0xffff_ffff] };
    // The largest exponent starts in word 16 (f64) or 4 (f32), and reads three words after that.
    let (levels, count) = if p.wide { (5, 20) } else { (3, 8) };
    let zero = p.int(ir, 0);
    let mut words = vec![zero];
    words.extend(TWO_OVER_PI.iter().flat_map(halves).take(count - 1).map(|word| p.int(ir, word as i64)));
    let index = ir.lshr(start, p.int(ir, width.ilog2().into()));
    for level in (0..levels).rev() {
        let step = 1usize << level;
        let skip = ir.icmp(IntPredicate::NE, ir.and(index, p.int(ir, step as i64)), zero);
        let word = |i: usize| words.get(i).copied().unwrap_or(zero);
        // What is still needed: four words from a position below `step`.
        words = (0..step + 3).map(|i| ir.select_int(skip, word(i + step), word(i))).collect();
    }
    let shift = ir.and(start, p.int(ir, width - 1));
    [0, 1, 2].map(|i| ir.int_intrinsic("llvm.fshl", &[words[i], words[i + 1], shift]))
}

/// A signed fraction of a quadrant, in radians. Its magnitude is taken apart into pieces that are exact floats;
/// pieces of one sign don't cancel.
fn radians<'c>(ir: &Ir<'c>, p: &Precision<'c>, fraction: IntValue<'c>) -> Double<'c> {
    let wide = fraction.get_type();
    let (width, digits) = (i64::from(float_bits(p.ty)), p.mantissa_bits + 1);
    let constant = |value: i64| wide.const_int(value as u64, false);
    let negative = ir.icmp(IntPredicate::SLT, fraction, wide.const_zero());
    let magnitude = ir.select_int(negative, ir.sub(wide.const_zero(), fraction), fraction);
    let first = 2 * width - 3 - digits;
    let second = first - digits;
    let piece = |from: i64, digits: i64| {
        let bits = ir.and(ir.lshr(magnitude, constant(from)), constant((1 << digits) - 1));
        let scale = p.float(f64::powi(2.0, (from - (2 * width - 2)) as i32));
        // The first piece has one bit more when the fraction is a half exactly.
        ir.fmul(ir.sitofp(ir.zext_or_trunc(bits, width as u32), p.ty), scale)
    };
    let quadrants =
        fast_two_sum(ir, piece(first, digits + 1), ir.fadd(piece(second, digits), piece(0, second)));
    let half_pi = RIGHT_ANGLE.double(p);
    let product = two_product(ir, p, quadrants.head, half_pi.head);
    let tail = ir.fadd(ir.fmul(quadrants.head, half_pi.tail), ir.fmul(quadrants.tail, half_pi.head));
    let r = fast_two_sum(ir, product.head, ir.fadd(product.tail, tail));
    let sign = ir.select_float(negative, p.float(-1.0), p.float(1.0));
    Double { head: ir.fmul(r.head, sign), tail: ir.fmul(r.tail, sign) }
}
