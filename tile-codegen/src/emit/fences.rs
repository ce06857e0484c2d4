//! What LLVM 22's code generators make other numbers of, kept from them in the optimised module. Each is mended in a later LLVM,
//! and none shows on simulated GPUs, whose code x86's generator makes.
//!
//! A fence (`llvm.arithmetic.fence`) is no instruction: a value with a name of its own, of which a code generator knows nothing.

use super::Ir;
use inkwell::FloatPredicate;
use inkwell::llvm_sys::core::{LLVMConstRealGetDouble, LLVMGetAggregateElement, LLVMIsAConstantFP};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::types::{BasicTypeEnum, FloatType};
use inkwell::values::{AsValueRef, BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue};

/// Keeps selections between a number and zero from becoming minima and maxima, which order −0 below +0: by `x < 0` a zero of
/// either sign is none of those chosen, and the result is the other side, not the lesser zero (llvm/llvm-project#93414, mended
/// in LLVM 23). x86 has minima of comparisons, and isn't concerned.
pub(crate) fn keep_signs_of_zeros(ir: &Ir<'_>) {
    for select in found(ir, |opcode| opcode == InstructionOpcode::Select) {
        if let Some(side) = chosen_beside_zero(select) {
            ir.builder.position_before(&select);
            let chosen = fenced(ir, value(select, side), None);
            assert!(select.set_operand(side, chosen), "a selection has two sides");
        }
    }
}

/// Keeps quotients of numbers that are known to be short from code for AMD's GPUs that divides them as floats of 24 bits: its
/// quotients may be one too large, of numbers of 23 and 24 bits (llvm/llvm-project#201186, #202753, #209711, mended in LLVM 23).
pub(crate) fn hide_short_dividends(ir: &Ir<'_>) {
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

/// Keeps products that are rounded to f16 from code for AMD's GPUs that does both by one instruction, which adds +0 and so
/// loses the sign of a zero (llvm/llvm-project#214544, mended in LLVM 23).
pub(crate) fn keep_rounded_products_apart(ir: &Ir<'_>) {
    for rounding in found(ir, |opcode| opcode == InstructionOpcode::FPTrunc) {
        let product = value(rounding, 0);
        if given_by(product, InstructionOpcode::FMul).is_some() {
            ir.builder.position_before(&rounding);
            assert!(rounding.set_operand(0, fenced(ir, product, None)), "what is rounded is one value");
        }
    }
}

fn found<'c>(ir: &Ir<'c>, is_one: impl Fn(InstructionOpcode) -> bool) -> Vec<InstructionValue<'c>> {
    ir.instructions().filter(|instruction| is_one(instruction.get_opcode())).collect()
}

fn value<'c>(instruction: InstructionValue<'c>, operand: u32) -> BasicValueEnum<'c> {
    instruction.get_operand(operand).expect("it has so many operands").expect_value("a number")
}

/// The instruction that gives a value, if it is such a one.
pub(crate) fn given_by(value: BasicValueEnum<'_>, opcode: InstructionOpcode) -> Option<InstructionValue<'_>> {
    value.as_instruction_value().filter(|instruction| instruction.get_opcode() == opcode)
}

fn is_division(opcode: InstructionOpcode) -> bool {
    use InstructionOpcode::{SDiv, SRem, UDiv, URem};
    matches!(opcode, UDiv | URem | SDiv | SRem)
}

/// A value behind a fence: as numbers of a float's format, if that is given.
pub(crate) fn fenced<'c>(
    ir: &Ir<'c>,
    value: BasicValueEnum<'c>,
    as_float: Option<FloatType<'c>>,
) -> BasicValueEnum<'c> {
    let own = value.get_type();
    let cast = |value: BasicValueEnum<'c>, ty: BasicTypeEnum<'c>| {
        ir.builder.build_bit_cast(value, ty, "").expect("the builder stands before an instruction")
    };
    let ty = match (as_float, own) {
        (None, _) => own,
        (Some(float), BasicTypeEnum::VectorType(vector)) => float.vec_type(vector.get_size()).into(),
        (Some(float), _) => float.into(),
    };
    let fenced = ir.intrinsic("llvm.arithmetic.fence", &[ty], &[cast(value, ty)]);
    cast(fenced.expect("a fence gives its operand"), own)
}

/// Of a selection between a number and the zero that it isn't compared for, by whether it lies beyond zero: the operand that is
/// the number.
fn chosen_beside_zero(select: InstructionValue<'_>) -> Option<u32> {
    let compare = given_by(value(select, 0), InstructionOpcode::FCmp)?;
    let predicate = compare.get_fcmp_predicate()?;
    let (side, zeros, predicate) = match [1, 2].map(|side| Zeros::among(value(select, side))) {
        [None, Some(zeros)] => (1, zeros, predicate),
        [Some(zeros), None] => (2, zeros, inverse(predicate)),
        _ => return None,
    };
    let predicate = match [0, 1].map(|side| Zeros::among(value(compare, side)).is_some()) {
        [false, true] => predicate,
        [true, false] => swapped(predicate),
        _ => return None,
    };
    use FloatPredicate::{OGT, OLT, UGT, ULT};
    let other_is_lesser = matches!(predicate, OLT | ULT) && zeros.positive;
    let other_is_greater = matches!(predicate, OGT | UGT) && zeros.negative;
    (other_is_lesser || other_is_greater).then_some(side)
}

/// Which zeros are among the elements of a constant, or are it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Zeros {
    positive: bool,
    negative: bool,
}

impl Zeros {
    /// `None` of what is no constant, and of one without a zero.
    fn among(value: BasicValueEnum<'_>) -> Option<Zeros> {
        let numbers = numbers(value);
        let has = |zero: f64| numbers.iter().any(|number| number.to_bits() == zero.to_bits());
        let zeros = Zeros { positive: has(0.0), negative: has(-0.0) };
        (zeros.positive || zeros.negative).then_some(zeros)
    }
}

/// The numbers that are known of a float's constant, or of a vector of such.
fn numbers(value: BasicValueEnum<'_>) -> Vec<f64> {
    let value_ref = value.as_value_ref();
    // SAFETY: the value belongs to a module that is alive. An element of a constant is asked for of a constant, below the
    // number of its elements, and is null where LLVM doesn't know it; a number is asked for of a number alone.
    unsafe {
        let elements = match value {
            BasicValueEnum::FloatValue(_) => vec![value_ref],
            BasicValueEnum::VectorValue(vector) if vector.is_const() => {
                (0..vector.get_type().get_size()).map(|i| LLVMGetAggregateElement(value_ref, i)).collect()
            }
            _ => Vec::new(),
        };
        let is_number = |element: &LLVMValueRef| !element.is_null() && !LLVMIsAConstantFP(*element).is_null();
        let number = |element| LLVMConstRealGetDouble(element, &mut 0);
        elements.into_iter().filter(is_number).map(number).collect()
    }
}

/// What holds where a comparison doesn't.
fn inverse(predicate: FloatPredicate) -> FloatPredicate {
    use FloatPredicate::*;
    match predicate {
        OGE => ULT,
        UGE => OLT,
        OLE => UGT,
        ULE => OGT,
        OLT => UGE,
        ULT => OGE,
        OGT => ULE,
        UGT => OLE,
        other => other,
    }
}

/// The comparison with its sides swapped.
fn swapped(predicate: FloatPredicate) -> FloatPredicate {
    use FloatPredicate::*;
    match predicate {
        OLT => OGT,
        ULT => UGT,
        OGT => OLT,
        UGT => ULT,
        OLE => OGE,
        ULE => UGE,
        OGE => OLE,
        UGE => ULE,
        other => other,
    }
}

/// A dividend of which nobody knows how many of its 32 bits it uses, or more of 64 than it has behind an extension; `None` of one
/// of 16 bits and fewer, which floats divide as they should.
fn hidden<'c>(ir: &Ir<'c>, dividend: BasicValueEnum<'c>) -> Option<BasicValueEnum<'c>> {
    use InstructionOpcode::{And, LShr, SExt, ZExt};
    let (builder, i32) = (&ir.builder, ir.context.i32_type());
    let bits = |value: BasicValueEnum<'c>| match value.get_type() {
        BasicTypeEnum::IntType(ty) => ty.get_bit_width(),
        BasicTypeEnum::VectorType(ty) => ty.get_element_type().into_int_type().get_bit_width(),
        _ => unreachable!("integers are divided"),
    };
    let extended = dividend.as_instruction_value().filter(|it| matches!(it.get_opcode(), ZExt | SExt));
    let of = bits(extended.map_or(dividend, |extension| value(extension, 0)));
    if of <= 16 {
        return None;
    }
    let BasicValueEnum::IntValue(number) = dividend else {
        let float = if bits(dividend) == 32 { ir.context.f32_type() } else { ir.context.f64_type() };
        return Some(fenced(ir, dividend, Some(float)));
    };
    if bits(dividend) == 32 {
        return Some(fenced(ir, dividend, Some(ir.context.f32_type())));
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
        return Some(fenced(ir, dividend, Some(ir.context.f64_type())));
    }
    let ty = number.get_type();
    let built = "the builder stands before a division";
    let short = builder.build_int_truncate(number, i32, "").expect(built);
    let short = fenced(ir, short.into(), Some(ir.context.f32_type())).into_int_value();
    let wide = match is_signed {
        true => builder.build_int_s_extend(short, ty, ""),
        false => builder.build_int_z_extend(short, ty, ""),
    };
    Some(wide.expect(built).into())
}

#[cfg(test)]
mod tests;
