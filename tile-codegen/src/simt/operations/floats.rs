//! Arithmetic of floats. NVIDIA's: PTX ISA, "fma", "ex2", "rcp", "rsqrt", "cvt". AMD's: the ISA manuals, `V_EXP_F32`, `V_RCP_F32`.
//!
//! Where a device may be off in the last place, the result is the correctly rounded one.

use super::is;
use crate::simt::instruction::{Call, Operation, Then};

pub(super) fn nvidia(name: &str) -> Option<Operation> {
    match name {
        "rcp.approx.ftz.f" => function(|x| 1.0 / x),
        // Of subnormal numbers too; no result is one.
        "rsqrt.approx.f" => give(|call| ((1.0 / f64::from(float(call, 0)).sqrt()) as f32).to_bits()),
        "fma.rn.sat.f" => {
            give(|call| saturate(float(call, 0).mul_add(float(call, 1), float(call, 2))).to_bits())
        }
        "ff2bf16x2.rn" => give(|call| pair(to_bf16, call)),
        "ff2f16x2.rn" => give(|call| pair(to_f16, call)),
        _ if is(name, "ex2.approx.ftz") => function(f64::exp2),
        _ => None,
    }
}

pub(super) fn amd(name: &str) -> Option<Operation> {
    match name {
        "exp2.f32" => function(f64::exp2),
        "rcp.f32" => function(|x| 1.0 / x),
        _ => None,
    }
}

/// AMD's instructions of pairs, which are declarations (CDNA4 ISA, `V_CVT_PK_BF16_F32`, `V_CVT_PK_F16_F32`).
pub(super) fn declared(name: &str) -> Option<Operation> {
    match name {
        "tile.round.bf16x2" => give(|call| pair(to_bf16, call)),
        "tile.round.f16x2" => give(|call| pair(to_f16, call)),
        _ => None,
    }
}

fn float(call: &Call<'_>, operand: usize) -> f32 {
    f32::from_bits(call.number(operand))
}

fn give(result: fn(&Call<'_>) -> u32) -> Option<Operation> {
    Operation::alone(move |_, call| {
        call.give_word(0, u64::from(result(call)));
        Ok(Then::GoOn)
    })
}

/// A function of one f32, for which subnormal operands and results are zeros of their sign.
fn function(of: fn(f64) -> f64) -> Option<Operation> {
    Operation::alone(move |_, call| {
        let result = flushed(of(f64::from(flushed(float(call, 0)))) as f32);
        call.give_word(0, u64::from(result.to_bits()));
        Ok(Then::GoOn)
    })
}

pub(super) fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// From 0 to 1; of NaN, and of −0, it is +0.
fn saturate(x: f32) -> f32 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// The first operand goes to the upper half.
fn pair(to_bits: fn(f32) -> u16, call: &Call<'_>) -> u32 {
    u32::from(to_bits(float(call, 0))) << 16 | u32::from(to_bits(float(call, 1)))
}

/// NaN as PTX gives it, for formats of 16 bits.
const NAN: u16 = 0x7fff;

/// To nearest, ties to even, with subnormals. The format is the upper half of f32, so that the lower half is what is
/// rounded off, and a carry into the exponent is right.
pub(super) fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let (kept, dropped) = ((bits >> 16) as u16, bits & 0xffff);
    match dropped {
        _ if x.is_nan() => NAN,
        0..0x8000 => kept,
        0x8000 => kept + (kept & 1),
        _ => kept + 1,
    }
}

/// To nearest, ties to even, with subnormals: a multiple of the place of the last bit, from 65520 on infinity.
pub(super) fn to_f16(x: f32) -> u16 {
    if x.is_nan() {
        return NAN;
    }
    let (sign, magnitude) = ((x.to_bits() >> 16 & 0x8000) as u16, f64::from(x.abs()));
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = ((x.to_bits() >> 23 & 0xff) as i32 - 127).max(-14);
    let units = (magnitude / f64::powi(2.0, exponent - 10)).round_ties_even() as u16;
    // A normal number has from 1024 units on; 2048 are the first number of the next exponent.
    sign | ((((exponent + 14) as u16) << 10) + units)
}

#[cfg(test)]
mod tests {
    use super::{saturate, to_bf16, to_f16};

    #[test]
    fn narrow_formats_round_to_nearest_even() {
        let bf16 = |bits: u32| to_bf16(f32::from_bits(bits));
        let rows = [
            (0x3f80_0000, 0x3f80),
            (0x3f80_8000, 0x3f80),
            (0x3f81_8000, 0x3f82),
            (0x3f80_8001, 0x3f81),
            (0x3f80_7fff, 0x3f80),
            (0x7f7f_8000, 0x7f80),
            (0x7f7f_7fff, 0x7f7f),
            (0xff80_0000, 0xff80),
            (0x0000_8000, 0x0000),
            (0x0000_8001, 0x0001),
            (0x8001_8000, 0x8002),
            (0x007f_ffff, 0x0080),
            (0x7f80_0001, 0x7fff),
            (0xffc0_0000, 0x7fff),
        ];
        for (from, to) in rows {
            assert_eq!(bf16(from), to, "{from:08x}");
        }
        for (from, to) in [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.99, 0x7bff),
            (65520.0, 0x7c00),
            (f32::NEG_INFINITY, 0xfc00),
            (f32::NAN, 0x7fff),
            (2f32.powi(-24), 0x0001),
            (2f32.powi(-25), 0x0000),
            (-1.5 * 2f32.powi(-24), 0x8002),
            (2f32.powi(-14), 0x0400),
            (1.0 + 2f32.powi(-11), 0x3c00),
            (1.0 + 3.0 * 2f32.powi(-11), 0x3c02),
            (2.0 - 2f32.powi(-12), 0x4000),
            (1e-40, 0x0000),
        ] {
            assert_eq!(to_f16(from), to, "{from}");
        }
    }

    #[test]
    fn saturation_makes_nan_zero() {
        let rows = [(f32::NAN, 0.0), (-3.0, 0.0), (-0.0, 0.0), (0.25, 0.25), (f32::INFINITY, 1.0)];
        for (x, expected) in rows {
            assert_eq!(saturate(x).to_bits(), f32::to_bits(expected), "{x}");
        }
    }
}
