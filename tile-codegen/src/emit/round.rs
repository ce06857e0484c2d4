//! Rounding to narrower formats where one instruction rounds two numbers: neighbours go together.
//!
//! Its result is a word as memory has it, of which the numbers' f32 are made; where they are packed into a word again,
//! LLVM finds that it is the same one.

use super::float8::Overflow;
use super::{Ir, Value, convert};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{FloatValue, FunctionValue, IntValue, VectorValue};
use tile_ir::DType;

impl<'c> Ir<'c> {
    /// Floats in their compute type, rounded to a format.
    pub(crate) fn round_all(&self, values: &[Value<'c>], dtype: DType) -> Vec<Value<'c>> {
        if let Some(conversion) = self.float8_conversion(dtype) {
            return self.rounded_to_float8s(values, dtype, conversion, Overflow::Leaves);
        }
        let round_chunk = |chunk: &[Value<'c>]| match (self.rounding_of_pairs(dtype), chunk) {
            (Some(name), &[Value::FloatValue(low), Value::FloatValue(high)]) => {
                self.unpacked(self.rounded_pair(name, high, low).into(), dtype, 2)
            }
            _ => chunk.iter().map(|value| self.round_to(value.into_float_value(), dtype).into()).collect(),
        };
        values.chunks(2).flat_map(round_chunk).collect()
    }

    /// Floats in their compute type, rounded to a narrower format, whose largest numbers those become that are too large.
    pub(crate) fn saturate_all(&self, values: &[Value<'c>], dtype: DType) -> Vec<Value<'c>> {
        if let Some(conversion) = self.float8_conversion(dtype) {
            return self.rounded_to_float8s(values, dtype, conversion, Overflow::Saturates);
        }
        let within = |value: &Value<'c>| convert::within(self, value.into_float_value(), dtype).into();
        self.round_all(&values.iter().map(within).collect::<Vec<_>>(), dtype)
    }

    fn rounding_of_pairs(&self, dtype: DType) -> Option<&'static str> {
        match (self.features.pair_rounding, dtype) {
            (Some(names), DType::F16) => Some(names.f16),
            (Some(names), DType::BF16) => Some(names.bf16),
            _ => None,
        }
    }

    /// Two f32 rounded to halves of a word, by an intrinsic or a declaration.
    pub(super) fn rounded_pair(&self, name: &str, high: FloatValue<'c>, low: FloatValue<'c>) -> IntValue<'c> {
        let operands = [high.into(), low.into()];
        let pair = if name.starts_with("llvm.") {
            self.intrinsic(name, &[], &operands)
        } else {
            self.call(self.pair_rounding_function(name), &operands)
        };
        let pair = pair.expect("a rounding has a result");
        let word = self.builder.build_bit_cast(pair, self.context.i32_type(), "");
        word.expect("a pair has 32 bits").into_int_value()
    }

    fn pair_rounding_function(&self, name: &str) -> FunctionValue<'c> {
        self.module.get_function(name).unwrap_or_else(|| {
            let ty = self.context.i32_type().fn_type(&[self.f32().into(); 2], false);
            let function = self.module.add_function(name, ty, None);
            // It computes: calls may be moved, merged and left out.
            for attribute in ["nounwind", "willreturn", "speculatable", "memory"] {
                let kind = Attribute::get_named_enum_kind_id(attribute);
                function.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(kind, 0));
            }
            function
        })
    }

    /// A vector of two f32.
    pub(crate) fn pair_of_floats(&self, low: FloatValue<'c>, high: FloatValue<'c>) -> VectorValue<'c> {
        self.vector(&[low.into(), high.into()], self.f32().into())
    }
}
