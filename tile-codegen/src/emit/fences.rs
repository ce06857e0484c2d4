//! Fences: values of which LLVM's code generators know nothing, for what they would make other numbers or slower code of in the
//! optimised module. No fence is an instruction.

use super::Ir;
use inkwell::FloatPredicate;
use inkwell::llvm_sys::core::{LLVMConstRealGetDouble, LLVMGetAggregateElement, LLVMIsAConstantFP};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::{AsValueRef, BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue};

/// How a value is fenced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// By LLVM's own, `llvm.arithmetic.fence`.
    Own,
    /// By an empty statement on a register, of this constraint. Of LLVM's own the code generator for AMD's GPUs makes a scalar
    /// where all threads have the number alike, can't copy what vector instructions give to that, and ends the process.
    Register(&'static str),
}

/// Keeps selections between a number and zero from becoming minima and maxima, which order −0 below +0: by `x < 0` a zero of
/// either sign is none of those chosen, and the result is the other side, not the lesser zero (llvm/llvm-project#93414, mended
/// in LLVM 23). x86 has minima of comparisons, and isn't concerned: simulated GPUs don't show it.
pub(crate) fn keep_signs_of_zeros(ir: &Ir<'_>, fence: Fence) {
    for select in found(ir, |opcode| opcode == InstructionOpcode::Select) {
        if let Some(side) = chosen_beside_zero(select) {
            ir.builder.position_before(&select);
            let chosen = fence.set(ir, value(select, side));
            assert!(select.set_operand(side, chosen), "a selection has two sides");
        }
    }
}

/// The instructions that are such.
pub(crate) fn found<'c>(
    ir: &Ir<'c>,
    is_one: impl Fn(InstructionOpcode) -> bool,
) -> Vec<InstructionValue<'c>> {
    ir.instructions().filter(|instruction| is_one(instruction.get_opcode())).collect()
}

/// An operand of an instruction.
pub(crate) fn value<'c>(instruction: InstructionValue<'c>, operand: u32) -> BasicValueEnum<'c> {
    instruction.get_operand(operand).expect("it has so many operands").expect_value("a number")
}

/// The instruction that gives a value, if it is such a one.
pub(crate) fn given_by(value: BasicValueEnum<'_>, opcode: InstructionOpcode) -> Option<InstructionValue<'_>> {
    value.as_instruction_value().filter(|instruction| instruction.get_opcode() == opcode)
}

impl Fence {
    /// A value behind it.
    pub(crate) fn set<'c>(self, ir: &Ir<'c>, value: BasicValueEnum<'c>) -> BasicValueEnum<'c> {
        let given = match self {
            Fence::Own => ir.intrinsic("llvm.arithmetic.fence", &[value.get_type()], &[value]),
            Fence::Register(constraint) => {
                ir.through_register(value, constraint).try_as_basic_value().basic()
            }
        };
        given.expect("a fence gives its operand")
    }
}

/// Of a selection between a number and a zero, by whether the number lies on one side of zero: the operand that is the number,
/// where LLVM makes a minimum or maximum of it that gives another zero for one of the two.
fn chosen_beside_zero(select: InstructionValue<'_>) -> Option<u32> {
    use FloatPredicate::{OGE, OGT, OLE, OLT, UGE, UGT, ULE, ULT};
    let compare = given_by(value(select, 0), InstructionOpcode::FCmp)?;
    let predicate = compare.get_fcmp_predicate()?;
    let predicate = match [0, 1].map(|side| Zeros::among(value(compare, side)).is_some()) {
        [false, true] => predicate,
        [true, false] => swapped(predicate),
        _ => return None,
    };
    match [1, 2].map(|side| Zeros::among(value(select, side))) {
        [None, Some(zeros)] => match predicate {
            OLT | ULT => zeros.positive.then_some(1),
            OGT | UGT => zeros.negative.then_some(1),
            _ => None,
        },
        [Some(zeros), None] => match predicate {
            ULT | OGE | UGE => zeros.positive.then_some(2),
            UGT | OLE | ULE => zeros.negative.then_some(2),
            _ => None,
        },
        _ => None,
    }
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

#[cfg(test)]
pub(crate) mod tests;
