//! Conversions of two 8-bit floats. NVIDIA's: PTX ISA, "cvt". AMD's: the ISA manuals, `V_CVT_F32_FP8`, `V_CVT_PK_F32_FP8`,
//! `V_CVT_PK_FP8_F32`, and those of `BF8`.

use super::floats::to_f16;
use crate::simt::fault::Problem;
use crate::simt::format::{E4M3, E5M2, Format, float8};
use crate::simt::host_module::Gpu;
use crate::simt::instruction::{Call, Operation, Then};

/// The lower byte is the first number; of two operands the first is the upper one.
pub(super) fn nvidia(name: &str) -> Option<Operation> {
    let format = |name| match name {
        "e4m3x2" => Some(E4M3),
        "e5m2x2" => Some(E5M2),
        _ => None,
    };
    if let Some(format) = name.strip_suffix(".to.f16x2.rn").and_then(format) {
        return give(move |call| {
            let half = |i: usize| to_f16(format.decode(&call.bytes(0)[i..]) as f32).to_le_bytes();
            Ok([half(0), half(1)].concat())
        });
    }
    let format = name.strip_prefix("ff.to.")?.strip_suffix(".rn").and_then(format)?;
    let numbers = finite(format);
    give(move |call| Ok([1, 0].map(|operand| saturated(&numbers, float(call, operand))).to_vec()))
}

pub(super) fn amd(name: &str, gpu: Gpu) -> Option<Operation> {
    if let Some(format) = name.strip_prefix("cvt.pk.f32.") {
        let format = float8(format, gpu.generation)?;
        return give(move |call| {
            let first = if call.flag(1) { 2 } else { 0 };
            let wide = |i: usize| (format.decode(&call.bytes(0)[first + i..]) as f32).to_le_bytes();
            Ok([wide(0), wide(1)].concat())
        });
    }
    if let Some(format) = name.strip_prefix("cvt.f32.") {
        let format = float8(format, gpu.generation)?;
        return give(move |call| {
            let byte = call.number(1) as usize;
            Ok((format.decode(&call.bytes(0)[byte..]) as f32).to_le_bytes().to_vec())
        });
    }
    let numbers = finite(float8(name.strip_prefix("cvt.pk.")?.strip_suffix(".f32")?, gpu.generation)?);
    give(move |call| {
        let mut word = call.bytes(2).to_vec();
        let first = if call.flag(3) { 2 } else { 0 };
        for operand in [0, 1] {
            word[first + operand] = in_range(&numbers, float(call, operand))?;
        }
        Ok(word)
    })
}

fn float(call: &Call<'_>, operand: usize) -> f64 {
    f64::from(f32::from_bits(call.number(operand)))
}

fn give(result: impl Fn(&Call<'_>) -> Result<Vec<u8>, Problem> + 'static) -> Option<Operation> {
    Operation::alone(move |_, call| {
        call.give(0, &result(call)?);
        Ok(Then::GoOn)
    })
}

/// What numbers that round to more than the largest become depends on a mode, which isn't modelled.
fn in_range(numbers: &[f64], x: f64) -> Result<u8, Problem> {
    let &[.., below, most] = numbers else { unreachable!("a format has numbers") };
    let halfway = most + (most - below) / 2.0;
    let is_even = numbers.len() % 2 == 1;
    let is_kept = x.is_nan() || x.abs() < halfway || x.abs() == halfway && is_even;
    if is_kept {
        Ok(saturated(numbers, x))
    } else {
        Err(Problem::Misuse(format!("{x} has no number of 8 bits")))
    }
}

/// The nearest of a format's finite numbers, of two that are equally near the even one; of NaN, all ones.
fn saturated(numbers: &[f64], x: f64) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let size = x.abs().min(*numbers.last().expect("a format has numbers"));
    let is_nearer = |a: &usize, b: &usize| {
        let distance = |code: usize| (numbers[code] - size).abs();
        distance(*a).total_cmp(&distance(*b)).then((a % 2).cmp(&(b % 2)))
    };
    let code = (0..numbers.len()).min_by(is_nearer).expect("a format has numbers") as u8;
    if x.is_sign_negative() { code | 0x80 } else { code }
}

/// The finite numbers without a sign, which are the first codes.
fn finite(format: Format) -> Vec<f64> {
    (0..0x80).map(|code| format.decode(&[code])).take_while(|number| number.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::{E4M3, E5M2, finite, in_range, saturated};

    #[test]
    fn numbers_round_to_the_nearest_of_8_bits() {
        let rows = [
            (1.0, 0x38, 0x3c),
            (-1.0, 0xb8, 0xbc),
            (0.0, 0x00, 0x00),
            (-0.0, 0x80, 0x80),
            // Between 1 and 1.125 of e4m3; between 1 and 1.25 of e5m2.
            (1.0625, 0x38, 0x3c),
            (1.1875, 0x3a, 0x3d),
            // Halves of the smallest numbers.
            (f64::powi(2.0, -10), 0x00, 0x14),
            (f64::powi(2.0, -17), 0x00, 0x00),
            (1.5 * f64::powi(2.0, -16), 0x00, 0x02),
            (464.0, 0x7e, 0x5f),
            (1e9, 0x7e, 0x7b),
            (f64::NEG_INFINITY, 0xfe, 0xfb),
            (f64::NAN, 0x7f, 0x7f),
        ];
        for (x, e4m3, e5m2) in rows {
            assert_eq!((saturated(&finite(E4M3), x), saturated(&finite(E5M2), x)), (e4m3, e5m2), "{x}");
        }
    }

    #[test]
    fn what_depends_on_a_mode_is_refused() {
        assert_eq!(in_range(&finite(E4M3), 464.0).ok(), Some(0x7e));
        assert_eq!(in_range(&finite(E5M2), -61439.0).ok(), Some(0xfb));
        for (format, x) in [(E4M3, 464.1), (E5M2, 61440.0), (E4M3, f64::INFINITY)] {
            assert!(in_range(&finite(format), x).is_err(), "{x}");
        }
    }
}
