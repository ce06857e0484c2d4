//! What LLVM 22's code generator for AMD's GPUs makes other numbers of, kept from it in the optimised module. Each is mended in
//! LLVM 23, and none shows on simulated GPUs, whose code x86's generator makes.

use crate::emit::Ir;
use crate::emit::fences::{Fence, found, given_by, value};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue};

/// Fences floats, which are in vector registers.
pub(crate) const FENCE: Fence = Fence::Register("v");

/// The intrinsics that number blocks.
const BLOCK_NUMBER: &str = "llvm.amdgcn.workgroup.id.";

/// How many ops are asked for what a number is made of.
const MOST_ASKED: u32 = 4;

/// Keeps quotients of numbers that are known to be short from code that divides them as floats of 24 bits: its quotients may be
/// one too large, of numbers of 23 and 24 bits (llvm/llvm-project#201186, #202753, #209711).
pub(in crate::gpu) fn hide_short_dividends(ir: &Ir<'_>) {
    for division in found(ir, is_division) {
        if value(division, 1).is_const() {
            continue;
        }
        ir.builder.position_before(&division);
        if let Some(hidden) = hidden(ir, value(division, 0)) {
            assert!(division.set_operand(0, hidden), "a division has a dividend");
        }
    }
}

/// Keeps products that are rounded to f16 from code that does both by one instruction, which adds +0 and so loses the sign of a
/// zero (llvm/llvm-project#214544).
pub(in crate::gpu) fn keep_rounded_products_apart(ir: &Ir<'_>) {
    for rounding in found(ir, |opcode| opcode == InstructionOpcode::FPTrunc) {
        let product = value(rounding, 0);
        if given_by(product, InstructionOpcode::FMul).is_some() {
            ir.builder.position_before(&rounding);
            assert!(rounding.set_operand(0, FENCE.set(ir, product)), "what is rounded is one value");
        }
    }
}

fn is_division(opcode: InstructionOpcode) -> bool {
    use InstructionOpcode::{SDiv, SRem, UDiv, URem};
    matches!(opcode, UDiv | URem | SDiv | SRem)
}

/// A dividend of which nobody knows how many of its 32 bits it uses, or more of 64 than it has behind an extension; `None` of one
/// that is so itself, and of one of 16 bits and fewer, which floats divide as they should.
fn hidden<'c>(ir: &Ir<'c>, dividend: BasicValueEnum<'c>) -> Option<BasicValueEnum<'c>> {
    use InstructionOpcode::{And, LShr, SExt, ZExt};
    let (builder, i32) = (&ir.builder, ir.context.i32_type());
    let extended = dividend.as_instruction_value().filter(|it| matches!(it.get_opcode(), ZExt | SExt));
    let of = bits(extended.map_or(dividend, |extension| value(extension, 0)));
    if of <= 16 || is_unknown(extended.map_or(dividend, |extension| value(extension, 0)), MOST_ASKED) {
        return None;
    }
    let built = "the builder stands before a division";
    let BasicValueEnum::IntValue(number) = dividend else {
        let vector = dividend.into_vector_value();
        let lanes = vector.get_type().get_size();
        let hidden = (0..lanes).fold(vector, |hidden, lane| {
            let lane = ir.context.i32_type().const_int(lane.into(), false);
            let number = builder.build_extract_element(vector, lane, "").expect(built).into_int_value();
            builder.build_insert_element(hidden, with_unknown_zero(ir, number), lane, "").expect(built)
        });
        return Some(hidden.into());
    };
    if bits(dividend) <= 32 {
        return Some(with_unknown_zero(ir, number).into());
    }
    let constant = |it: InstructionValue<'c>| {
        let constants =
            [0, 1].map(|operand| value(it, operand).into_int_value().get_zero_extended_constant());
        constants.into_iter().flatten().next()
    };
    let is_short = given_by(dividend, And).and_then(constant).is_some_and(|mask| mask <= u32::MAX.into())
        || given_by(dividend, LShr).and_then(constant).is_some_and(|by| by >= 32);
    let is_signed = extended.is_some_and(|it| it.get_opcode() == SExt);
    if !is_short && (extended.is_none() || of != 32) {
        return Some(with_unknown_zero(ir, number).into());
    }
    let short = builder.build_int_truncate(number, i32, "").expect(built);
    let short = with_unknown_zero(ir, short);
    let wide = match is_signed {
        true => builder.build_int_s_extend(short, number.get_type(), ""),
        false => builder.build_int_z_extend(short, number.get_type(), ""),
    };
    Some(wide.expect(built).into())
}

/// Whether nobody can know how many of a number's bits are used: an argument, what was read from memory, the number of a block,
/// and sums of such and of what is chosen among them.
fn is_unknown(number: BasicValueEnum<'_>, asked: u32) -> bool {
    use InstructionOpcode::{Add, Call, Load, Select, Sub, Trunc};
    if number.is_const() {
        return false;
    }
    let Some(made) = number.as_instruction_value() else { return true };
    let is_of = |operand: u32| asked > 0 && is_unknown(value(made, operand), asked - 1);
    match made.get_opcode() {
        Load => true,
        Call => called(made).is_some_and(|name| name.starts_with(BLOCK_NUMBER)),
        Add | Sub => is_of(0) || is_of(1),
        Trunc => is_of(0),
        Select => is_of(1) || is_of(2),
        _ => false,
    }
}

/// The name of what an instruction calls.
fn called(call: InstructionValue<'_>) -> Option<String> {
    let callee = call.get_operand(call.get_num_operands().checked_sub(1)?)?.value()?;
    let name = callee.into_pointer_value().get_name().to_str().ok()?.to_owned();
    Some(name)
}

/// A number, and a zero that nobody knows. Threads that have the number alike have this alike.
fn with_unknown_zero<'c>(ir: &Ir<'c>, number: IntValue<'c>) -> IntValue<'c> {
    let zero = Fence::Register("s").set(ir, number.get_type().const_zero().into());
    ir.add(number, zero.into_int_value())
}

/// How many bits an integer has, or the elements of a vector of such.
fn bits(value: BasicValueEnum<'_>) -> u32 {
    match value.get_type() {
        BasicTypeEnum::IntType(ty) => ty.get_bit_width(),
        BasicTypeEnum::VectorType(ty) => ty.get_element_type().into_int_type().get_bit_width(),
        _ => unreachable!("integers are divided"),
    }
}

#[cfg(test)]
mod tests;
