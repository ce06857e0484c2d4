//! Formats of matrix elements: bits to numbers and back. Every format but f64 fits in an f64 exactly, integers too.

use super::generation::Generation;

/// A format of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    F64,
    F32,
    /// An f32 whose last 13 bits the product ignores.
    Tf32,
    F16,
    Bf16,
    Float8(Float8),
    I32,
    S8,
    U8,
}

/// A float of eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Float8 {
    /// Bits of the mantissa: 3 (e4m3) or 2 (e5m2).
    pub(super) mantissa: u32,
    /// What the value 2^0 has in the exponent.
    pub(super) bias: i32,
    pub(super) special: Special,
}

/// Which bits of a float of eight bits aren't finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// As in IEEE 754: the largest exponent.
    Ieee,
    /// All ones but the sign ("fn").
    AllOnes,
    /// The negative zero ("fnuz").
    NegativeZero,
}

/// Of NVIDIA's GPUs, and of AMD's from gfx950 and gfx12 on (OCP 8-bit floating point specification).
pub(super) const E4M3: Format = Format::Float8(Float8 { mantissa: 3, bias: 7, special: Special::AllOnes });
pub(super) const E5M2: Format = Format::Float8(Float8 { mantissa: 2, bias: 15, special: Special::Ieee });
/// Of gfx942 (CDNA3 ISA, "FP8 and BF8").
pub(super) const E4M3FNUZ: Format =
    Format::Float8(Float8 { mantissa: 3, bias: 8, special: Special::NegativeZero });
pub(super) const E5M2FNUZ: Format =
    Format::Float8(Float8 { mantissa: 2, bias: 16, special: Special::NegativeZero });

/// A format of eight bits by AMD's name for it, as a GPU has it; `None` where it has none of that name.
pub(super) fn float8(name: &str, generation: Generation) -> Option<Format> {
    let (fp8, bf8) = match generation {
        Generation::Cdna3 => (E4M3FNUZ, E5M2FNUZ),
        Generation::Cdna4 | Generation::Rdna4 => (E4M3, E5M2),
        Generation::Nvidia | Generation::Cdna2 | Generation::Rdna3 => return None,
    };
    match name {
        "fp8" => Some(fp8),
        "bf8" => Some(bf8),
        _ => None,
    }
}

impl Format {
    pub(super) fn bytes(self) -> usize {
        match self {
            Format::F64 => 8,
            Format::F32 | Format::Tf32 | Format::I32 => 4,
            Format::F16 | Format::Bf16 => 2,
            Format::Float8(_) | Format::S8 | Format::U8 => 1,
        }
    }

    /// The number that bytes stand for.
    pub(super) fn decode(self, bytes: &[u8]) -> f64 {
        let word = |count: usize| {
            let mut word = [0; 8];
            word[..count].copy_from_slice(&bytes[..count]);
            u64::from_le_bytes(word)
        };
        match self {
            Format::F64 => f64::from_bits(word(8)),
            Format::F32 => f64::from(f32::from_bits(word(4) as u32)),
            Format::Tf32 => f64::from(f32::from_bits(word(4) as u32 & !0x1fff)),
            Format::Bf16 => f64::from(f32::from_bits((word(2) as u32) << 16)),
            Format::F16 => decode_float(word(2) as u32, 5, 10, 15, Special::Ieee),
            Format::Float8(Float8 { mantissa, bias, special }) => {
                decode_float(word(1) as u32, 7 - mantissa, mantissa, bias, special)
            }
            Format::I32 => f64::from((word(4) as u32).cast_signed()),
            Format::S8 => f64::from(bytes[0].cast_signed()),
            Format::U8 => f64::from(bytes[0]),
        }
    }

    /// Adds the bytes of a result: f64, f32, f16, or i32.
    pub(super) fn encode(self, value: f64, into: &mut Vec<u8>) {
        match self {
            Format::F64 => into.extend(value.to_bits().to_le_bytes()),
            Format::F32 => into.extend((value as f32).to_bits().to_le_bytes()),
            Format::F16 => into.extend(encode_f16(value).to_le_bytes()),
            Format::I32 => into.extend((value as i32).to_le_bytes()),
            _ => unreachable!("verified: no matrix product has such a result"),
        }
    }
}

fn decode_float(bits: u32, exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> f64 {
    let (sign, mantissa) = (bits >> (exponent_bits + mantissa_bits), bits & ((1 << mantissa_bits) - 1));
    let (most, all) = ((1 << exponent_bits) - 1, (1 << (exponent_bits + mantissa_bits)) - 1);
    let exponent = bits >> mantissa_bits & most;
    let sign = if sign == 1 { -1.0 } else { 1.0 };
    let scale = |exponent: i32| 2f64.powi(exponent - mantissa_bits as i32);
    match special {
        Special::Ieee if exponent == most && mantissa == 0 => return sign * f64::INFINITY,
        Special::Ieee if exponent == most => return f64::NAN,
        Special::AllOnes if bits & all == all => return f64::NAN,
        Special::NegativeZero if bits == all + 1 => return f64::NAN,
        _ => {}
    }
    if exponent == 0 {
        return sign * f64::from(mantissa) * scale(1 - bias);
    }
    sign * f64::from(mantissa + (1 << mantissa_bits)) * scale(exponent as i32 - bias)
}

/// The nearest f16, ties to even.
fn encode_f16(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size.is_nan() {
        return 0x7e00;
    }
    // 65520 is half way between the largest number and the one that would follow.
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = (size.log2().floor() as i32).max(-14);
    let units = (size * 2f64.powi(10 - exponent)).round_ties_even();
    let bits = if units < 1024.0 { units as i32 } else { ((exponent + 14) << 10) + units as i32 };
    sign | bits as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    /// "FP8" is one format on an MI300X, another on what came later, and none before.
    #[test]
    fn a_generation_has_floats_of_eight_bits_of_its_own() {
        use Generation::*;
        let fp8 = [Nvidia, Cdna2, Cdna3, Cdna4, Rdna3, Rdna4].map(|it| float8("fp8", it));
        assert_eq!(fp8, [None, None, Some(E4M3FNUZ), Some(E4M3), None, Some(E4M3)]);
    }

    #[test]
    fn halves_are_those_of_ieee() {
        for bits in 0..=u16::MAX {
            let (expected, actual) = (f16::from_bits(bits), Format::F16.decode(&bits.to_le_bytes()));
            assert!(actual == expected.to_f64() || actual.is_nan() && expected.is_nan(), "{bits:#x}");
            if !actual.is_nan() {
                assert_eq!(encode_f16(actual), bits);
            }
        }
        for value in
            [1.0 + 2f64.powi(-11), 3e-8, 2.98e-8, 65519.9, 65520.0, 1.0 + 3.0 * 2f64.powi(-11), 6.1e-5]
        {
            assert_eq!(encode_f16(value), f16::from_f64(value).to_bits(), "{value}");
        }
    }

    #[test]
    fn floats_of_eight_bits() {
        // Largest, smallest normal, and smallest numbers of the OCP specification's table.
        let decode = |format: Format, bits: u8| format.decode(&[bits]);
        assert_eq!(decode(E4M3, 0x7e), 448.0);
        assert_eq!(decode(E4M3, 0x08), 2f64.powi(-6));
        assert_eq!(decode(E4M3, 0x81), -2f64.powi(-9));
        assert!(decode(E4M3, 0x7f).is_nan() && decode(E4M3, 0xff).is_nan());
        assert_eq!(decode(E5M2, 0x7b), 57344.0);
        assert_eq!(decode(E5M2, 0x01), 2f64.powi(-16));
        assert_eq!(decode(E5M2, 0xfc), f64::NEG_INFINITY);
        // Those of CDNA3 are half as large, have no infinities, and one NaN.
        assert_eq!(decode(E4M3FNUZ, 0x7f), 240.0);
        assert_eq!(decode(E5M2FNUZ, 0x7f), 57344.0);
        assert!(decode(E4M3FNUZ, 0x80).is_nan() && decode(E5M2FNUZ, 0x80).is_nan());
        assert_eq!(decode(E4M3FNUZ, 0x40), 1.0);
    }
}
