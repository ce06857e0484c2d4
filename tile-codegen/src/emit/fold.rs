//! Instructions that needn't be emitted, because they undo the ones that made their operand.
//!
//! Tiles of narrow formats are widened when they are loaded and narrowed when they are stored, and go in words between
//! blocks of code. LLVM's passes find every such pair, too, in a time that grows with what they are given.

use inkwell::types::{BasicTypeEnum, FloatType, IntType};
use inkwell::values::{BasicValueEnum, FloatValue, InstructionOpcode, InstructionValue, IntValue};

/// The operand of an instruction, if it is this one.
fn operand_of<'c>(
    made: Option<InstructionValue<'c>>,
    opcode: InstructionOpcode,
    operand: u32,
) -> Option<BasicValueEnum<'c>> {
    let made = made.filter(|made| made.get_opcode() == opcode)?;
    made.get_operand(operand)?.value()
}

/// What a number was extended from by zeros.
fn extended(number: IntValue<'_>) -> Option<IntValue<'_>> {
    operand_of(number.as_instruction(), InstructionOpcode::ZExt, 0).map(BasicValueEnum::into_int_value)
}

/// What a number was cut from.
fn cut(number: IntValue<'_>) -> Option<IntValue<'_>> {
    operand_of(number.as_instruction(), InstructionOpcode::Trunc, 0).map(BasicValueEnum::into_int_value)
}

/// What a number was shifted from, by a constant.
fn shifted(number: IntValue<'_>, opcode: InstructionOpcode) -> Option<(IntValue<'_>, u64)> {
    let made = number.as_instruction();
    let amount = operand_of(made, opcode, 1)?.into_int_value().get_zero_extended_constant()?;
    Some((operand_of(made, opcode, 0)?.into_int_value(), amount))
}

/// The integer of this type whose bits a float is.
pub(super) fn bits<'c>(float: FloatValue<'c>, ty: IntType<'c>) -> Option<IntValue<'c>> {
    let operand = operand_of(float.as_instruction(), InstructionOpcode::BitCast, 0)?;
    (operand.get_type() == BasicTypeEnum::from(ty)).then(|| operand.into_int_value())
}

/// The float of this type that was extended to another.
pub(super) fn before_extension<'c>(float: FloatValue<'c>, ty: FloatType<'c>) -> Option<FloatValue<'c>> {
    let operand = operand_of(float.as_instruction(), InstructionOpcode::FPExt, 0)?.into_float_value();
    (operand.get_type() == ty).then_some(operand)
}

/// The number of so many bits that was extended by zeros to another.
pub(super) fn before_zeros(number: IntValue<'_>, bits: u32) -> Option<IntValue<'_>> {
    extended(number).filter(|narrow| narrow.get_type().get_bit_width() == bits)
}

/// What a right shift of a number by a constant is: the number that was shifted left by as much without losing bits, or
/// the number itself.
pub(super) fn shifted_right<'c>(number: IntValue<'c>, amount: IntValue<'c>) -> Option<IntValue<'c>> {
    let amount = amount.get_zero_extended_constant()?;
    if amount == 0 {
        return Some(number);
    }
    let (before, left) = shifted(number, InstructionOpcode::Shl)?;
    let kept = u64::from(extended(before)?.get_type().get_bit_width());
    let width = u64::from(number.get_type().get_bit_width());
    (left == amount && kept + left <= width).then_some(before)
}

/// The word of 32 bits of which a number is a part, and its place there in bits, a multiple of how many it has.
pub(super) fn part_of_word(number: IntValue<'_>) -> Option<(IntValue<'_>, u64)> {
    let in_order = |place: u64| place.is_multiple_of(u64::from(number.get_type().get_bit_width()));
    part_of(number).filter(|&(word, place)| word.get_type().get_bit_width() == 32 && in_order(place))
}

/// What a number is a part of, and its place there in bits.
fn part_of(number: IntValue<'_>) -> Option<(IntValue<'_>, u64)> {
    let word = cut(number)?;
    Some(shifted(word, InstructionOpcode::LShr).unwrap_or((word, 0)))
}

/// The word of 32 bits of which a number is a half, and its place there in bits.
pub(in crate::emit) fn half_of(number: IntValue<'_>) -> Option<(IntValue<'_>, u64)> {
    part_of_word(number).filter(|_| number.get_type().get_bit_width() == 16)
}

/// The word of 32 bits of which a half is the upper half of a number whose lower half is 0, and its place there in bits.
pub(in crate::emit) fn upper_half_of(number: IntValue<'_>) -> Option<(IntValue<'_>, u64)> {
    if let Some((word, 16)) = shifted(number, InstructionOpcode::Shl) {
        return Some((word, 0)).filter(|(word, _)| extended(*word).is_none());
    }
    let made = number.as_instruction();
    let mask = operand_of(made, InstructionOpcode::And, 1)?.into_int_value().get_zero_extended_constant()?;
    let word = operand_of(made, InstructionOpcode::And, 0)?.into_int_value();
    (mask == 0xffff_0000).then_some((word, 16))
}

/// The word of `width` bits whose parts these are, all of them and in order.
pub(super) fn word<'c>(parts: &[BasicValueEnum<'c>], width: u32) -> Option<IntValue<'c>> {
    let part = |part: BasicValueEnum<'c>| part_of(part.into_int_value());
    let (word, _) = part(*parts.first()?)?;
    let bits = u64::from(width) / parts.len() as u64;
    let is_whole = word.get_type().get_bit_width() == width;
    let in_order = |(i, &value): (usize, &BasicValueEnum<'c>)| part(value) == Some((word, i as u64 * bits));
    (is_whole && parts.iter().enumerate().all(in_order)).then_some(word)
}

#[cfg(test)]
mod tests {
    use crate::emit::{Features, Ir, Value};
    use inkwell::context::Context;
    use inkwell::values::{AnyValue, BasicValueEnum};
    use tile_ir::DType;

    const FEATURES: Features = Features { half_conversion: true, fma: true, extrema: true, ..Features::NONE };

    /// Emits in a function of an i16 and two i32; gives the value's text where the code ends.
    fn emitted(emit: impl for<'c> Fn(&Ir<'c>, [Value<'c>; 3]) -> Value<'c>) -> String {
        let context = Context::create();
        let ir = Ir::new(&context, "test", FEATURES);
        let parameters = [16, 32, 32].map(|bits| ir.int_type(bits).into());
        let function = ir.module.add_function("f", context.void_type().fn_type(&parameters, false), None);
        ir.builder.position_at_end(context.append_basic_block(function, "entry"));
        let parameters = [(0, "half"), (1, "word"), (2, "other")].map(|(i, name)| {
            let parameter: BasicValueEnum<'_> = function.get_nth_param(i).expect("there are three");
            parameter.set_name(name);
            parameter
        });
        emit(&ir, parameters).print_to_string().to_string()
    }

    #[test]
    fn what_was_widened_is_narrowed_to_itself() {
        for dtype in [DType::BF16, DType::F16] {
            let stored =
                emitted(|ir, [half, ..]| ir.value_to_storage(ir.value_from_storage(half, dtype), dtype));
            assert_eq!(stored, "i16 %half", "{dtype}");
        }
    }

    #[test]
    fn the_parts_of_a_word_are_the_word() {
        for (dtype, count) in [(DType::BF16, 2), (DType::U8, 4)] {
            let words = emitted(|ir, [_, word, _]| ir.words(&ir.unpacked(word, dtype, count), dtype)[0]);
            assert_eq!(words, "i32 %word", "{dtype}");
        }
    }

    #[test]
    fn a_half_of_a_word_is_widened_at_once() {
        let wide = |place: usize| {
            emitted(|ir, [_, word, _]| {
                ir.bits(ir.unpacked(word, DType::BF16, 2)[place].into_float_value()).into()
            })
        };
        assert!(wide(0).ends_with(" = shl i32 %word, 16"), "{}", wide(0));
        assert!(wide(1).ends_with(" = and i32 %word, -65536"), "{}", wide(1));
    }

    #[test]
    fn other_parts_are_another_word() {
        let swapped = emitted(|ir, [_, word, _]| {
            let parts = ir.unpacked(word, DType::BF16, 2);
            ir.words(&[parts[1], parts[0]], DType::BF16)[0]
        });
        assert!(swapped.contains(" = or "), "{swapped}");
        let mixed = emitted(|ir, [_, word, other]| {
            let [a, b] = [word, other].map(|word| ir.unpacked(word, DType::BF16, 2));
            ir.words(&[a[0], b[1]], DType::BF16)[0]
        });
        assert!(mixed.contains(" = or "), "{mixed}");
        let fewer = emitted(|ir, [_, word, _]| {
            let parts = ir.unpacked(word, DType::U8, 4);
            ir.words(&parts[..2], DType::U8)[0]
        });
        assert!(fewer.contains("i16"), "{fewer}");
    }

    #[test]
    fn bits_that_a_shift_loses_stay_lost() {
        let shifted = emitted(|ir, [_, word, _]| {
            let amount = ir.int_type(32).const_int(16, false);
            ir.lshr(ir.shl(word.into_int_value(), amount), amount).into()
        });
        assert!(shifted.contains(" = lshr "), "{shifted}");
    }
}
