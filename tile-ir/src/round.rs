//! Rounding to float formats: one function for every format and every direction.
//!
//! A float of any format is an f64 that the format represents. Rounding divides by the distance of neighbours,
//! which is a power of two and so exact, rounds to an integer, and multiplies back.
//!
//! A NaN that was only moved keeps its bits: a format's mantissa stands at the top of the f64's.

use crate::dtype::DType;

/// How bits are shared out in a binary float format. The exponent bias is `2^(exponent_bits − 1) − 1`.
///
/// A format without a sign has no zero and no subnormal numbers either: every field of the exponent is that of a normal
/// number (OCP microscaling formats, E8M0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Bits of the mantissa that are stored.
    pub mantissa_bits: u32,
    /// Whether the largest exponent holds infinities and NaNs, as IEEE 754 has it. Otherwise it holds numbers,
    /// all bits set is the one NaN, and what is too large rounds to NaN (OCP 8-bit floating point, E4M3).
    pub has_infinity: bool,
    /// Whether there are negative numbers, and with them zeros.
    pub is_signed: bool,
}

impl FloatFormat {
    /// The exponent of the smallest normal number.
    pub const fn min_exponent(self) -> i32 {
        if self.is_signed { 1 - self.bias() } else { -self.bias() }
    }

    /// The exponent bias.
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The largest finite number.
    pub fn max(self) -> f64 {
        let unit = power_of_two(-(self.mantissa_bits as i32));
        match (self.has_infinity, self.mantissa_bits) {
            (true, _) => (2.0 - unit) * power_of_two(self.bias()),
            // All bits set is NaN, which without a mantissa is the whole of the largest exponent.
            (false, 0) => power_of_two(self.bias()),
            (false, _) => (2.0 - 2.0 * unit) * power_of_two(self.bias() + 1),
        }
    }

    /// The distance from 1 to the next larger number.
    pub fn epsilon(self) -> f64 {
        power_of_two(-(self.mantissa_bits as i32))
    }
}

/// What becomes of a number between two neighbours of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// The nearer neighbour; of two equally near the one with an even mantissa.
    NearestEven,
    /// The neighbour that is nearer to zero.
    TowardZero,
    /// The larger neighbour.
    Up,
    /// The smaller neighbour.
    Down,
}

impl Rounding {
    /// Every direction.
    pub const ALL: &[Rounding] = &[Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::Down];

    /// The name in IR text.
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::NearestEven => "nearest_even",
            Rounding::TowardZero => "toward_zero",
            Rounding::Up => "up",
            Rounding::Down => "down",
        }
    }

    /// The direction with this name in IR text.
    pub fn from_name(name: &str) -> Option<Rounding> {
        Rounding::ALL.iter().copied().find(|rounding| rounding.name() == name)
    }

    /// The name of the Rust variant.
    pub const fn variant(self) -> &'static str {
        match self {
            Rounding::NearestEven => "NearestEven",
            Rounding::TowardZero => "TowardZero",
            Rounding::Up => "Up",
            Rounding::Down => "Down",
        }
    }

    /// The integer that a number is rounded to.
    pub fn to_integer(self, value: f64) -> f64 {
        match self {
            Rounding::NearestEven => value.round_ties_even(),
            Rounding::TowardZero => value.trunc(),
            Rounding::Up => value.ceil(),
            Rounding::Down => value.floor(),
        }
    }

    /// Whether a number of this sign is rounded away from zero.
    const fn grows(self, negative: bool) -> bool {
        match self {
            Rounding::NearestEven => true,
            Rounding::TowardZero => false,
            Rounding::Up => !negative,
            Rounding::Down => negative,
        }
    }
}

/// Rounds a number to a float format. What is too large becomes an infinity (NaN in a format without one), or
/// the largest number where the direction points toward zero. In a format without a sign, what is negative becomes NaN,
/// and what is smaller than the smallest number, zeros too, becomes that one.
///
/// ```
/// use tile_ir::{DType, Rounding, round::round};
/// let just_above = 1.0 + 2f64.powi(-24);
/// assert_eq!(round(DType::F32, Rounding::NearestEven, just_above), 1.0);
/// assert_eq!(round(DType::F32, Rounding::Up, just_above), 1.0 + 2f64.powi(-23));
/// assert_eq!(round(DType::F8E4M3FN, Rounding::TowardZero, 1e9), 448.0);
/// ```
pub fn round(dtype: DType, rounding: Rounding, value: f64) -> f64 {
    let Some(format) = dtype.float_format().filter(|format| format.mantissa_bits < 52) else { return value };
    let overflow = if format.has_infinity { f64::INFINITY.copysign(value) } else { f64::NAN };
    if value.is_nan() {
        return value;
    }
    if value.is_infinite() {
        return overflow;
    }
    if !format.is_signed && value < 0.0 {
        return f64::NAN;
    }
    let value = if format.is_signed { value } else { value.abs().max(power_of_two(format.min_exponent())) };
    let exponent = exponent(value).max(format.min_exponent());
    let unit = power_of_two(exponent - format.mantissa_bits as i32);
    let rounded = (rounding.to_integer(value / unit) * unit).copysign(value);
    if rounded.abs() <= format.max() {
        rounded
    } else if rounding.grows(value.is_sign_negative()) {
        overflow
    } else {
        format.max().copysign(value)
    }
}

/// Bits of the mantissa of an f64.
const F64_MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The mantissa of an f64.
const F64_MANTISSA: u64 = (1 << F64_MANTISSA_BITS) - 1;

/// The bits of a number that a float format represents; the low [`DType::bits`] are used.
///
/// # Panics
/// If the format isn't a float's.
pub fn encode(dtype: DType, value: f64) -> u64 {
    let format = dtype.float_format().expect("a float format");
    if format.mantissa_bits == 52 {
        return value.to_bits();
    }
    let is_negative = format.is_signed && value.is_sign_negative();
    let sign = u64::from(is_negative) << (format.exponent_bits + format.mantissa_bits);
    let all_ones = (1u64 << (format.exponent_bits + format.mantissa_bits)) - 1;
    let infinity = all_ones >> format.mantissa_bits << format.mantissa_bits;
    let magnitude = if value.is_nan() && format.has_infinity {
        let mantissa = (value.to_bits() & F64_MANTISSA) >> (F64_MANTISSA_BITS - format.mantissa_bits);
        let quiet = 1 << (format.mantissa_bits - 1);
        // What a wider format has below would leave an infinity.
        infinity | if mantissa == 0 { quiet } else { mantissa }
    } else if value.is_nan() {
        all_ones
    } else if value.is_infinite() {
        infinity
    } else {
        let exponent = exponent(value).max(format.min_exponent());
        let units = (value.abs() / power_of_two(exponent - format.mantissa_bits as i32)) as u64;
        // A normal number's leading one adds 1 to the exponent field, where field 0 is that of subnormal numbers.
        let units = if format.is_signed { units } else { units - (1 << format.mantissa_bits) };
        (((exponent - format.min_exponent()) as u64) << format.mantissa_bits) + units
    };
    sign | magnitude
}

/// The number that the low bits stand for.
///
/// ```
/// use tile_ir::{DType, round::{decode, encode}};
/// assert_eq!(decode(DType::F8E4M3FN, 0x7e), 448.0);
/// assert_eq!(encode(DType::BF16, -1.0), 0xbf80);
/// ```
///
/// # Panics
/// If the format isn't a float's.
pub fn decode(dtype: DType, bits: u64) -> f64 {
    let format = dtype.float_format().expect("a float format");
    if format.mantissa_bits == 52 {
        return f64::from_bits(bits);
    }
    let all_ones = (1u64 << (format.exponent_bits + format.mantissa_bits)) - 1;
    let infinity = all_ones >> format.mantissa_bits << format.mantissa_bits;
    let magnitude = bits & all_ones;
    let field = (magnitude >> format.mantissa_bits) as i32;
    let stored = magnitude & ((1 << format.mantissa_bits) - 1);
    let mantissa = stored as f64 * format.epsilon();
    let value = if format.has_infinity && magnitude >= infinity {
        f64::from_bits(f64::INFINITY.to_bits() | stored << (F64_MANTISSA_BITS - format.mantissa_bits))
    } else if !format.has_infinity && magnitude == all_ones {
        f64::NAN
    } else if field == 0 && format.is_signed {
        mantissa * power_of_two(format.min_exponent())
    } else {
        (1.0 + mantissa) * power_of_two(field - format.bias())
    };
    if format.is_signed && bits & (all_ones + 1) != 0 { -value } else { value }
}

/// ⌊log₂ |value|⌋; subnormal numbers and zeros have the exponent −1023.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// `2^exponent`, for exponents of normal f64. Of `powi` nobody says that it is exact.
const fn power_of_two(exponent: i32) -> f64 {
    assert!(-1022 <= exponent && exponent <= 1023);
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every finite number of a format that isn't negative, in order.
    fn numbers(dtype: DType) -> Vec<f64> {
        (0..1u64 << (dtype.bits() - 1)).map(|bits| decode(dtype, bits)).filter(|x| x.is_finite()).collect()
    }

    #[test]
    fn powers_of_two_are_those_that_doubling_gives() {
        let (mut up, mut down) = (1.0, 1.0);
        for exponent in 0..=1022 {
            assert_eq!((power_of_two(exponent), power_of_two(-exponent)), (up, down), "{exponent}");
            (up, down) = (2.0 * up, down / 2.0);
        }
        assert_eq!(power_of_two(1023), up);
    }

    #[test]
    fn bits_are_those_of_the_machine_and_of_the_published_tables() {
        for bits in (0..=u16::MAX).map(u64::from) {
            let (f16, bf16) = (half::f16::from_bits(bits as u16), half::bf16::from_bits(bits as u16));
            for (dtype, expected) in [(DType::F16, f16.to_f64()), (DType::BF16, bf16.to_f64())] {
                let found = decode(dtype, bits);
                assert!(found == expected || found.is_nan() && expected.is_nan(), "{dtype} {bits:#x}");
                assert!(found.is_nan() || encode(dtype, found) == bits, "{dtype} {bits:#x}");
            }
        }
        for x in [0.0, -0.0, 1.0, -1.5e-40, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY] {
            assert_eq!(encode(DType::F32, f64::from(x)), u64::from(x.to_bits()));
            assert_eq!(decode(DType::F32, u64::from(x.to_bits())), f64::from(x));
        }
        // OCP 8-bit Floating Point Specification, table 1.
        let e4m3 =
            [(0x7e, 448.0), (0x08, 2f64.powi(-6)), (0x07, 0.875 * 2f64.powi(-6)), (0x01, 2f64.powi(-9))];
        let e5m2 =
            [(0x7b, 57344.0), (0x04, 2f64.powi(-14)), (0x03, 0.75 * 2f64.powi(-14)), (0x01, 2f64.powi(-16))];
        for (dtype, table) in [(DType::F8E4M3FN, e4m3), (DType::F8E5M2, e5m2)] {
            for (bits, value) in table {
                assert_eq!((decode(dtype, bits), decode(dtype, bits | 0x80)), (value, -value));
                assert_eq!((encode(dtype, value), encode(dtype, -value)), (bits, bits | 0x80));
            }
        }
        assert!(decode(DType::F8E4M3FN, 0x7f).is_nan() && decode(DType::F8E5M2, 0x7e).is_nan());
        assert_eq!(decode(DType::F8E5M2, 0xfc), f64::NEG_INFINITY);
        assert_eq!((encode(DType::F8E4M3FN, f64::NAN), encode(DType::F8E5M2, f64::INFINITY)), (0x7f, 0x7c));
    }

    /// Signalling ones, too. A format with one NaN of each sign has that of any other.
    #[test]
    fn nan_has_the_bits_that_it_was_made_of() {
        for dtype in [DType::F16, DType::BF16, DType::F8E5M2, DType::F8E4M3FN, DType::F8E8M0FNU] {
            for bits in 0..1u64 << dtype.bits() {
                assert_eq!(encode(dtype, decode(dtype, bits)), bits, "{dtype} {bits:#x}");
            }
        }
        for bits in [0x7fc0_0001, 0x7f80_0001, 0xffa0_0000, 0xffff_ffff, 0x7fbf_ffff] {
            assert_eq!(encode(DType::F32, decode(DType::F32, bits)), bits, "{bits:#x}");
            assert!(decode(DType::F32, bits).is_nan());
        }
        // Of a wider NaN what there is room for, and a quiet one where that is nothing.
        let narrowed = |bits: u64| encode(DType::F16, f64::from_bits(bits));
        assert_eq!(narrowed(0x7ff4_0000_0000_0001), 0x7d00);
        assert_eq!(narrowed(0xfff0_0000_0000_0001), 0xfe00);
        assert_eq!(encode(DType::F32, f64::NAN), 0x7fc0_0000);
    }

    #[test]
    fn limits_are_those_of_the_formats() {
        let limits = |dtype: DType| {
            let format = dtype.float_format().unwrap();
            (format.max(), format.epsilon(), 2f64.powi(format.min_exponent()))
        };
        assert_eq!(limits(DType::F8E4M3FN), (448.0, 0.125, 2f64.powi(-6)));
        assert_eq!(limits(DType::F8E5M2), (57344.0, 0.25, 2f64.powi(-14)));
        assert_eq!(limits(DType::F16), (65504.0, 2f64.powi(-10), 2f64.powi(-14)));
        assert_eq!(
            limits(DType::F32),
            (f64::from(f32::MAX), f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE))
        );
        assert_eq!(limits(DType::F64), (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE));
    }

    #[test]
    fn small_formats_round_to_the_neighbours_of_an_exhaustive_list() {
        for dtype in [DType::F8E4M3FN, DType::F8E5M2] {
            let format = dtype.float_format().unwrap();
            let numbers = numbers(dtype);
            assert_eq!(numbers.last(), Some(&format.max()));
            for (i, pair) in numbers.windows(2).enumerate() {
                let (low, high) = (pair[0], pair[1]);
                let middle = (low + high) / 2.0;
                let even = if i % 2 == 0 { low } else { high };
                for (x, nearest) in [
                    (low, low),
                    (low + (high - low) / 8.0, low),
                    (middle, even),
                    (high - (high - low) / 8.0, high),
                ] {
                    let up = if x == low { low } else { high };
                    for (x, nearest, down, up) in [(x, nearest, low, up), (-x, -nearest, -up, -low)] {
                        assert_eq!(round(dtype, Rounding::NearestEven, x), nearest, "{dtype} {x}");
                        assert_eq!(round(dtype, Rounding::Down, x), down, "{dtype} {x}");
                        assert_eq!(round(dtype, Rounding::Up, x), up, "{dtype} {x}");
                        let toward_zero = if x < 0.0 { up } else { down };
                        assert_eq!(round(dtype, Rounding::TowardZero, x), toward_zero, "{dtype} {x}");
                    }
                }
            }
        }
    }

    #[test]
    fn nearest_agrees_with_the_machine_and_the_half_crate() {
        let mut bits = 0x0123_4567_89ab_cdefu64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Exponents around those of the small formats, and a few of every kind.
            let x = f64::from_bits(bits);
            let near = f64::from_bits(bits & !(0x7ff << 52) | ((1023 - 30 + (bits >> 58)) << 52));
            for x in [x, near] {
                let same = |a: f64, b: f64| {
                    a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan()
                };
                assert!(same(round(DType::F32, Rounding::NearestEven, x), f64::from(x as f32)), "{x:e}");
                // `half` rounds an f64 twice, by way of f32, but an f32 once.
                let (x, f16) = (f64::from(x as f32), half::f16::from_f32(x as f32));
                assert!(same(round(DType::F16, Rounding::NearestEven, x), f16.to_f64()), "{x:e}");
            }
        }
    }

    #[test]
    fn what_is_too_large_follows_the_direction() {
        let round16 = |rounding, x| round(DType::F16, rounding, x);
        assert_eq!(round16(Rounding::NearestEven, 65519.0), 65504.0);
        assert_eq!(round16(Rounding::NearestEven, 65520.0), f64::INFINITY);
        assert_eq!(round16(Rounding::TowardZero, 1e9), 65504.0);
        assert_eq!(
            (round16(Rounding::Up, -1e9), round16(Rounding::Down, -1e9)),
            (-65504.0, f64::NEG_INFINITY)
        );
        assert_eq!(round(DType::F8E4M3FN, Rounding::NearestEven, 464.0), 448.0);
        assert!(round(DType::F8E4M3FN, Rounding::NearestEven, 465.0).is_nan());
        assert!(round(DType::F8E4M3FN, Rounding::TowardZero, f64::INFINITY).is_nan());
        assert!(round16(Rounding::Down, -0.0).is_sign_negative());
    }

    /// OCP Microscaling Formats (MX) Specification 1.0, section 5.4.1: E8M0.
    #[test]
    fn powers_of_two_have_neither_sign_nor_zero() {
        let dtype = DType::F8E8M0FNU;
        for (bits, value) in [(0, 2f64.powi(-127)), (1, 2f64.powi(-126)), (127, 1.0), (254, 2f64.powi(127))] {
            assert_eq!((decode(dtype, bits), encode(dtype, value)), (value, bits));
        }
        assert!(decode(dtype, 255).is_nan());
        assert_eq!(encode(dtype, f64::NAN), 255);
        let (least, most) = (2f64.powi(-127), 2f64.powi(127));
        let cases = [
            (
                Rounding::NearestEven,
                [0.0, 0.3 * least, 1.4 * least, 1.49, 1.5, 3.0, 1.4 * most],
                [least, least, least, 1.0, 2.0, 4.0, most],
            ),
            (
                Rounding::TowardZero,
                [0.0, 1.9 * least, 1.99, 2.0, 3.9, most, 1e300],
                [least, least, 1.0, 2.0, 2.0, most, most],
            ),
            (
                Rounding::Up,
                [-0.0, least, 1.01 * least, 1.01, 2.0, 2.1, most],
                [least, least, 2.0 * least, 2.0, 2.0, 4.0, most],
            ),
        ];
        for (rounding, values, expected) in cases {
            assert_eq!(values.map(|value| round(dtype, rounding, value)), expected, "{}", rounding.name());
        }
        for value in [-1.0, -1e-300, f64::INFINITY, 1.5 * most] {
            assert!(round(dtype, Rounding::NearestEven, value).is_nan(), "{value:e}");
        }
    }
}
