//! What an empty statement of assembly takes in a scalar register comes from one, of code for AMD's GPUs.
//!
//! A number that all threads have alike is hidden by a statement on a scalar register ([`super::dialect`]). LLVM 22 selects
//! vector instructions for a number that counts a condition, as `div_ceil` does, alike in all threads or not, can't copy
//! what they give to the statement's register, and ends the process: "illegal VGPR to SGPR copy". So such a number is read
//! from the first thread that runs. That is done behind all of LLVM's passes on IR, which know that it changes nothing.

use crate::emit::Ir;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::{AsValueRef, IntValue};
use std::collections::HashSet;

/// Reads what statements take in scalar registers from one thread, where it counts conditions.
pub(in crate::gpu) fn keep(ir: &Ir<'_>) {
    for instruction in ir.instructions() {
        let statement = instruction.as_value_ref();
        // SAFETY: it is an instruction of a module that lives, in a block of its own context, and the operand is an
        // integer of the same module, as `scalar_of` says.
        unsafe {
            let Some(number) = scalar_of(statement) else { continue };
            if counts_conditions(number, &mut HashSet::new()) {
                ir.builder.position_before(&instruction);
                let first = ir.int_intrinsic("llvm.amdgcn.readfirstlane", &[IntValue::new(number)]);
                LLVMSetOperand(statement, 0, first.as_value_ref());
            }
        }
    }
}

/// The integer that a statement of assembly takes in a scalar register, if the instruction is one.
///
/// # Safety
/// The value is an instruction of a module that lives.
unsafe fn scalar_of(statement: LLVMValueRef) -> Option<LLVMValueRef> {
    // SAFETY: a call has the number of arguments and the callee that are asked for, and inline assembly its constraints, whose
    // length is written to a variable of ours.
    unsafe {
        if LLVMGetInstructionOpcode(statement) != LLVMOpcode::LLVMCall
            || LLVMGetNumArgOperands(statement) != 1
        {
            return None;
        }
        let callee = LLVMGetCalledValue(statement);
        if LLVMIsAInlineAsm(callee).is_null() {
            return None;
        }
        let mut length = 0;
        let constraints = LLVMGetInlineAsmConstraintString(callee, &raw mut length).cast::<u8>();
        let constraints = std::slice::from_raw_parts(constraints, length);
        constraints.starts_with(b"=s").then(|| LLVMGetOperand(statement, 0))
    }
}

/// Whether a condition is part of a number as 0 or 1, whatever else is computed with it.
///
/// # Safety
/// The value is one of a module that lives.
unsafe fn counts_conditions(value: LLVMValueRef, seen: &mut HashSet<LLVMValueRef>) -> bool {
    // SAFETY: operands are asked for of an instruction alone, and so many as it has; an extension has an integer.
    unsafe {
        if LLVMIsAInstruction(value).is_null() || !seen.insert(value) {
            return false;
        }
        let operand = |i| LLVMGetOperand(value, i);
        match LLVMGetInstructionOpcode(value) {
            LLVMOpcode::LLVMZExt | LLVMOpcode::LLVMSExt if is_condition(operand(0)) => true,
            LLVMOpcode::LLVMLoad => false,
            _ => (0..LLVMGetNumOperands(value) as u32).any(|i| counts_conditions(operand(i), seen)),
        }
    }
}

/// # Safety
/// The value is an integer of a module that lives.
unsafe fn is_condition(value: LLVMValueRef) -> bool {
    // SAFETY: an integer has a width.
    unsafe { LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::targets::features;
    use crate::llvm::Machine;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::targets::FileType;

    /// A statement on a size, and on one more where there is a rest; LLVM can't make machine code of the latter.
    const STATEMENTS: &str = r#"
        define amdgpu_kernel void @k(i64 %size, i64 %rest, ptr addrspace(1) %to) {
          %is = icmp ne i64 %rest, 0
          %one = zext i1 %is to i64
          %all = add i64 %size, %one
          %a = call i64 asm "", "=s,0"(i64 %size)
          %b = call i64 asm "", "=s,0"(i64 %all)
          %sum = add i64 %a, %b
          store i64 %sum, ptr addrspace(1) %to
          ret void
        }
    "#;

    #[test]
    fn numbers_that_count_conditions_are_read_from_a_thread() {
        for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"] {
            let context = Context::create();
            let buffer = MemoryBuffer::create_from_memory_range_copy(STATEMENTS.as_bytes(), "k");
            let ir =
                Ir::in_module(&context, context.create_module_from_ir(buffer).unwrap(), features::AMDGPU);
            let machine = Machine::amdgpu(target, "").unwrap();
            machine.prepare(&ir.module);
            keep(&ir);
            ir.module.verify().unwrap();
            let reads =
                ir.module.to_string().matches("call i64 @llvm.amdgcn.readfirstlane.i64(i64 %all)").count();
            assert_eq!(reads, 1);
            machine.emit("k", &ir.module, FileType::Assembly).unwrap();
        }
    }
}
