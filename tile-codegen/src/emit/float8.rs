//! 8-bit floats by instructions that convert two of them at once: neighbours go together.
//!
//! Wide numbers note what they were made of, so that who stores them again needs no second conversion.

use super::{Ir, Value, convert, fold};
use inkwell::FloatPredicate;
use inkwell::values::{FloatValue, IntValue};
use tile_ir::DType;

/// How a family's instructions convert two 8-bit floats of the OCP formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float8Conversion {
    /// To two f16, and from two f32, of which those that are too large become the largest numbers (PTX ISA, "cvt", `.e4m3x2`,
    /// `.e5m2x2`, `.satfinite`).
    Halves,
    /// To two f32, from either half of a word, and from two f32 (CDNA4 and RDNA4 ISA manuals, `V_CVT_PK_F32_FP8`,
    /// `V_CVT_PK_FP8_F32`, and those of `BF8`). What numbers that are too large become depends on a mode.
    Words,
}

/// The names of a format's conversions.
struct Names {
    widening: &'static str,
    /// Of one number of a word, where there is one.
    widening_one: Option<&'static str>,
    narrowing: &'static str,
}

impl Float8Conversion {
    fn names(self, dtype: DType) -> Names {
        match (self, dtype) {
            (Float8Conversion::Halves, DType::F8E4M3FN) => Names {
                widening: "llvm.nvvm.e4m3x2.to.f16x2.rn",
                widening_one: None,
                narrowing: "llvm.nvvm.ff.to.e4m3x2.rn",
            },
            (Float8Conversion::Halves, _) => Names {
                widening: "llvm.nvvm.e5m2x2.to.f16x2.rn",
                widening_one: None,
                narrowing: "llvm.nvvm.ff.to.e5m2x2.rn",
            },
            (Float8Conversion::Words, DType::F8E4M3FN) => Names {
                widening: "llvm.amdgcn.cvt.pk.f32.fp8",
                widening_one: Some("llvm.amdgcn.cvt.f32.fp8"),
                narrowing: "llvm.amdgcn.cvt.pk.fp8.f32",
            },
            (Float8Conversion::Words, _) => Names {
                widening: "llvm.amdgcn.cvt.pk.f32.bf8",
                widening_one: Some("llvm.amdgcn.cvt.f32.bf8"),
                narrowing: "llvm.amdgcn.cvt.pk.bf8.f32",
            },
        }
    }
}

/// What becomes of f32 that are too large for a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Infinity, or NaN where there is none.
    Leaves,
    /// The largest number.
    Saturates,
}

impl<'c> Ir<'c> {
    /// How numbers of a format are converted by instructions, where they are.
    pub(super) fn float8_conversion(&self, dtype: DType) -> Option<Float8Conversion> {
        self.features.float8.filter(|_| dtype.is_float8())
    }

    /// Numbers from their bits, as f32.
    pub(super) fn widened_float8s(
        &self,
        stored: &[Value<'c>],
        dtype: DType,
        conversion: Float8Conversion,
    ) -> Vec<Value<'c>> {
        let widened = |chunk: &[Value<'c>]| match *chunk {
            [low, high] => {
                let bits = [low, high].map(Value::into_int_value);
                self.widened_pair(bits, dtype, conversion)
            }
            _ => vec![self.widened_float8(chunk[0].into_int_value(), dtype, conversion)],
        };
        stored.chunks(2).flat_map(widened).map(Value::from).collect()
    }

    /// One number from its bits.
    pub(super) fn widened_float8(
        &self,
        bits: IntValue<'c>,
        dtype: DType,
        conversion: Float8Conversion,
    ) -> FloatValue<'c> {
        let number = match conversion.names(dtype).widening_one {
            Some(name) => {
                let (word, place) = fold::part_of_word(bits).unwrap_or((self.zext_or_trunc(bits, 32), 0));
                let byte = self.int_type(32).const_int(place / 8, false);
                let number = self.intrinsic(name, &[], &[word.into(), byte.into()]);
                number.expect("a conversion has a result").into_float_value()
            }
            None => self.numbers_of_pair(self.zext_or_trunc(bits, 16), dtype, conversion)[0],
        };
        self.note_origin(number, dtype, bits);
        number
    }

    fn widened_pair(
        &self,
        bits: [IntValue<'c>; 2],
        dtype: DType,
        conversion: Float8Conversion,
    ) -> Vec<FloatValue<'c>> {
        let pair = self.joined_bytes(bits);
        let numbers = self.numbers_of_pair(pair, dtype, conversion);
        for (&number, bits) in numbers.iter().zip(bits) {
            self.note_origin(number, dtype, bits);
        }
        numbers
    }

    /// Two bytes as an integer of 16 bits, the first in the lower half.
    fn joined_bytes(&self, [low, high]: [IntValue<'c>; 2]) -> IntValue<'c> {
        match [low, high].map(fold::part_of_word) {
            [Some((word, place)), Some((same, above))] if word == same && above == place + 8 => {
                let amount = word.get_type().const_int(place, false);
                self.zext_or_trunc(self.lshr(word, amount), 16)
            }
            _ => self.joined(&[low.into(), high.into()], 16),
        }
    }

    fn numbers_of_pair(
        &self,
        pair: IntValue<'c>,
        dtype: DType,
        conversion: Float8Conversion,
    ) -> Vec<FloatValue<'c>> {
        let name = conversion.names(dtype).widening;
        let numbers = match conversion {
            Float8Conversion::Halves => self.intrinsic(name, &[], &[pair.into()]),
            Float8Conversion::Words => {
                let (word, place) = fold::half_of(pair).unwrap_or((self.zext_or_trunc(pair, 32), 0));
                self.intrinsic(name, &[], &[word.into(), self.bool(place == 16).into()])
            }
        };
        let numbers = self.parts(numbers.expect("a conversion has a result"), 2);
        let wide = |number: Value<'c>| match conversion {
            Float8Conversion::Halves => self.fpext(number.into_float_value(), self.f32()),
            Float8Conversion::Words => number.into_float_value(),
        };
        numbers.into_iter().map(wide).collect()
    }

    /// f32 rounded to a format, to nearest even.
    pub(super) fn rounded_to_float8s(
        &self,
        values: &[Value<'c>],
        dtype: DType,
        conversion: Float8Conversion,
        overflow: Overflow,
    ) -> Vec<Value<'c>> {
        let rounded = |chunk: &[Value<'c>]| {
            let low = chunk[0].into_float_value();
            let high = chunk.get(1).map_or(self.f32().const_zero(), |high| high.into_float_value());
            let numbers = [low, high];
            let pair = match (overflow, conversion) {
                (Overflow::Leaves, _) => self.narrowed_pair(numbers, dtype, conversion),
                (Overflow::Saturates, Float8Conversion::Halves) => {
                    self.pair_of_numbers(numbers, dtype, conversion)
                }
                (Overflow::Saturates, Float8Conversion::Words) => {
                    let within = numbers.map(|number| convert::within(self, number, dtype));
                    self.pair_of_numbers(within, dtype, conversion)
                }
            };
            let bytes = self.split_words(pair.into(), 8, 2);
            self.widened_float8s(&bytes[..chunk.len()], dtype, conversion)
        };
        values.chunks(2).flat_map(rounded).collect()
    }

    /// Numbers that are too large become NaN or an infinity, whatever the instruction makes of them.
    fn narrowed_pair(
        &self,
        numbers: [FloatValue<'c>; 2],
        dtype: DType,
        conversion: Float8Conversion,
    ) -> IntValue<'c> {
        let format = dtype.float_format().expect("called with a float format");
        let constant = |value: f64| self.f32().const_float(value);
        // Halfway to what would follow the largest number, to even is up from a mantissa of all ones, and down to that of
        // e4m3, whose last bit is 0.
        let halfway = constant(format.max() + format.epsilon() * 2f64.powi(format.max().log2() as i32 - 1));
        let predicate = if format.has_infinity { FloatPredicate::OGE } else { FloatPredicate::OGT };
        let is_too_large =
            numbers.map(|number| self.fcmp(predicate, self.float_intrinsic("llvm.fabs", &[number]), halfway));
        let kept = |i: usize| {
            let instead = match (format.has_infinity, conversion) {
                (false, _) => constant(f64::NAN),
                (true, Float8Conversion::Words) => {
                    self.float_intrinsic("llvm.copysign", &[constant(format.max()), numbers[i]])
                }
                (true, Float8Conversion::Halves) => return numbers[i],
            };
            self.select_float(is_too_large[i], instead, numbers[i])
        };
        let pair = self.pair_of_numbers([kept(0), kept(1)], dtype, conversion);
        if !format.has_infinity {
            return pair;
        }
        // Infinity follows the largest number.
        let infinite = is_too_large.map(|is_too_large| self.zext_or_trunc(is_too_large, 16));
        let infinite_above = self.shl(infinite[1], pair.get_type().const_int(8, false));
        self.add(pair, self.or(infinite[0], infinite_above))
    }

    fn pair_of_numbers(
        &self,
        [low, high]: [FloatValue<'c>; 2],
        dtype: DType,
        conversion: Float8Conversion,
    ) -> IntValue<'c> {
        let name = conversion.names(dtype).narrowing;
        let operands: &[Value<'c>] = match conversion {
            Float8Conversion::Halves => &[high.into(), low.into()],
            Float8Conversion::Words => {
                &[low.into(), high.into(), self.int_type(32).const_zero().into(), self.bool(false).into()]
            }
        };
        let pair = self.intrinsic(name, &[], operands).expect("a conversion has a result");
        self.zext_or_trunc(pair.into_int_value(), 16)
    }
}
