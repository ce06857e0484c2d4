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
use std::collections::HashSet;

/// Renames the steps of every chain of addresses in an optimised module, where a block of code has taken them before.
pub(in crate::gpu) fn rename(ir: &Ir<'_>) {
    for function in ir.module.get_functions() {
        for block in function.get_basic_blocks() {
            let mut taken = HashSet::new();
            for instruction in block.get_instructions() {
                let address = instruction.as_value_ref();
                // SAFETY: it is an instruction of a module that lives, in a block of its own context.
                unsafe { rename_step(ir, address, &mut taken) };
            }
        }
    }
}

/// Gives an address that is one step behind another a name of its own for the step, if that was taken before.
///
/// # Safety
/// The value is an instruction of `ir`'s module.
unsafe fn rename_step(ir: &Ir<'_>, address: LLVMValueRef, taken: &mut HashSet<LLVMValueRef>) {
    let builder = ir.builder.as_mut_ptr();
    // SAFETY: operands are asked for only of what `step_of` found to be an address with two of them, and the builder
    // stands before an instruction of its own context.
    unsafe {
        let Some(step) = step_of(address) else { return };
        if taken.insert(step) || step_of(LLVMGetOperand(address, 0)).is_none() {
            return;
        }
        LLVMPositionBuilderBefore(builder, address);
        LLVMSetOperand(address, 1, LLVMBuildFreeze(builder, step, c"".as_ptr()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::targets::features;
    use inkwell::AddressSpace;
    use inkwell::context::Context;

    /// Of three addresses, each a step behind the last, the first is no step behind another, and the fourth is a number of
    /// elements behind.
    #[test]
    fn steps_behind_steps_have_names_of_their_own() {
        let context = Context::create();
        let ir = Ir::new(&context, "k", features::NVPTX);
        let (pointer, i64) = (context.ptr_type(AddressSpace::from(1)), context.i64_type());
        let ty = context.void_type().fn_type(&[pointer.into(), i64.into()], false);
        let function = ir.module.add_function("k", ty, None);
        ir.builder.position_at_end(context.append_basic_block(function, "entry"));
        let mut address = function.get_nth_param(0).unwrap().into_pointer_value();
        let step = function.get_nth_param(1).unwrap().into_int_value();
        for step in [step, step, step, i64.const_int(4, false)] {
            address = ir.offset(context.f32_type().into(), address, step);
        }
        ir.builder.build_store(address, context.f32_type().const_zero()).unwrap();
        ir.return_void();
        rename(&ir);
        ir.module.verify().unwrap();
        let text = ir.module.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with('%')).collect();
        assert_eq!(
            lines,
            [
                "%2 = getelementptr float, ptr addrspace(1) %0, i64 %1",
                "%3 = freeze i64 %1",
                "%4 = getelementptr float, ptr addrspace(1) %2, i64 %3",
                "%5 = freeze i64 %1",
                "%6 = getelementptr float, ptr addrspace(1) %4, i64 %5",
                "%7 = getelementptr float, ptr addrspace(1) %6, i64 4",
            ]
        );
    }
}
