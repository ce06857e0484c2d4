//! Names of their own for the steps from address to address, of code for NVIDIA's GPUs.
//!
//! A thread goes from one of its elements to the next by adding a step that sizes decide, and reads another element
//! instead where that one doesn't exist. LLVM's straight-line strength reduction, which the code generator runs, compares
//! each of these addresses with all before it that were reached by the same step, to find out whether one could be made of
//! another; and where an address may not be used, it looks each time through the code around for a reason why it can't be
//! poison. Of 64 elements these are two thousand searches, half of the time that such a kernel took from IR to PTX, which
//! find nothing: the addresses are made step by step already. So each takes its step under another name, a `freeze`, and is
//! compared with nothing. The code generator's next pass, which seeks common expressions, makes one of the names again.

use crate::emit::Ir;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::AsValueRef;

/// Renames the steps of every chain of addresses in an optimised module.
pub(super) fn rename(ir: &Ir<'_>) {
    for function in ir.module.get_functions() {
        for block in function.get_basic_blocks() {
            for instruction in block.get_instructions() {
                let address = instruction.as_value_ref();
                // SAFETY: it is an instruction of a module that lives, in a block of its own context.
                unsafe { rename_step(ir, address) };
            }
        }
    }
}

/// Gives an address that is one step behind another a name of its own for the step.
///
/// # Safety
/// The value is an instruction of `ir`'s module.
unsafe fn rename_step(ir: &Ir<'_>, address: LLVMValueRef) {
    let builder = ir.builder.as_mut_ptr();
    // SAFETY: operands are asked for only of what `step_of` found to be an address with two of them, and the builder
    // stands before an instruction of its own context.
    unsafe {
        if step_of(address).is_none() || step_of(LLVMGetOperand(address, 0)).is_none() {
            return;
        }
        LLVMPositionBuilderBefore(builder, address);
        let step = LLVMBuildFreeze(builder, LLVMGetOperand(address, 1), c"".as_ptr());
        LLVMSetOperand(address, 1, step);
    }
}

/// What an address adds to another, if it isn't a constant.
///
/// # Safety
/// The value is one of a module that lives.
unsafe fn step_of(address: LLVMValueRef) -> Option<LLVMValueRef> {
    // SAFETY: the value is one of a module that lives, as the caller vouches; an instruction that computes an address has the
    // address from which it goes as its first operand.
    unsafe {
        let is_address = !LLVMIsAInstruction(address).is_null()
            && LLVMGetInstructionOpcode(address) == LLVMOpcode::LLVMGetElementPtr
            && LLVMGetNumOperands(address) == 2;
        let step = is_address.then(|| LLVMGetOperand(address, 1))?;
        (LLVMIsConstant(step) == 0).then_some(step)
    }
}
