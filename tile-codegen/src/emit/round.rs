//! Rounding to narrower formats where one instruction rounds two numbers: neighbours go together.
//!
//! Its result is a word as memory has it, of which the numbers' f32 are made; where they are packed into a word again,
//! LLVM finds that it is the same one.

use super::{Ir, Value};
use inkwell::values::{FloatValue, IntValue};
use tile_ir::DType;

impl<'c> Ir<'c> {
    /// Floats in their compute type, rounded to a format.
    pub(crate) fn round_all(&self, values: &[Value<'c>], dtype: DType) -> Vec<Value<'c>> {
        let round_chunk = |chunk: &[Value<'c>]| match (self.rounding_of_pairs(dtype), chunk) {
            (Some(name), &[Value::FloatValue(low), Value::FloatValue(high)]) => {
                self.unpacked(self.rounded_pair(name, high, low).into(), dtype, 2)
            }
            _ => chunk.iter().map(|value| self.round_to(value.into_float_value(), dtype).into()).collect(),
        };
        values.chunks(2).flat_map(round_chunk).collect()
    }

    fn rounding_of_pairs(&self, dtype: DType) -> Option<&'static str> {
        match (self.features.pair_rounding, dtype) {
            (Some(names), DType::F16) => Some(names.f16),
            (Some(names), DType::BF16) => Some(names.bf16),
            _ => None,
        }
    }

    /// Two f32 rounded to halves of a word.
    pub(super) fn rounded_pair(&self, name: &str, high: FloatValue<'c>, low: FloatValue<'c>) -> IntValue<'c> {
        let pair = self.intrinsic(name, &[], &[high.into(), low.into()]).expect("a rounding has a result");
        let word = self.builder.build_bit_cast(pair, self.context.i32_type(), "");
        word.expect("a pair has 32 bits").into_int_value()
    }
}
