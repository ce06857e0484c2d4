//! What an empty statement of assembly takes in a scalar register comes from one, of code for AMD's GPUs.
//!
//! A number that all threads have alike is hidden by a statement on a scalar register ([`super::dialect`]). LLVM 22 selects
//! vector instructions for a number that counts a condition, as `div_ceil` does, and for one made of what a statement had in a
//! vector register ([`super::amd_numbers`]), alike in all threads or not, can't copy what they give to the statement's register,
//! and ends the process: "illegal VGPR to SGPR copy". So such a number is read from the first thread that runs. That is done
//! behind all of LLVM's passes on IR, which know that it changes nothing.

use crate::emit::Ir;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::{AsValueRef, IntValue};
use std::collections::HashSet;

/// Reads what statements take in scalar registers from one thread, where vector instructions give it.
pub(in crate::gpu) fn keep(ir: &Ir<'_>) {
    for instruction in ir.instructions() {
        let statement = instruction.as_value_ref();
        // SAFETY: it is an instruction of a module that lives, in a block of its own context, and the operand is an
        // integer of the same module, as `scalar_of` says.
        unsafe {
            let Some(number) = scalar_of(statement) else { continue };
            if is_made_in_vectors(number, &mut HashSet::new()) {
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
    // SAFETY: what the caller says, and a statement on a register has an operand.
    unsafe { is_through_register(statement, "=s").then(|| LLVMGetOperand(statement, 0)) }
}

/// Whether an instruction is a statement of assembly that takes a value in a register whose constraint begins so.
///
/// # Safety
/// The value is an instruction of a module that lives.
unsafe fn is_through_register(statement: LLVMValueRef, constraint: &str) -> bool {
    // SAFETY: a call has the number of arguments and the callee that are asked for, and inline assembly its constraints, whose
    // length is written to a variable of ours.
    unsafe {
        if LLVMGetInstructionOpcode(statement) != LLVMOpcode::LLVMCall
            || LLVMGetNumArgOperands(statement) != 1
        {
            return false;
        }
        let callee = LLVMGetCalledValue(statement);
        if LLVMIsAInlineAsm(callee).is_null() {
            return false;
        }
        let mut length = 0;
        let constraints = LLVMGetInlineAsmConstraintString(callee, &raw mut length).cast::<u8>();
        let constraints = std::slice::from_raw_parts(constraints, length);
        constraints.starts_with(constraint.as_bytes())
    }
}

/// Whether a condition is part of a number as 0 or 1, or what was in a vector register, whatever else is computed with it.
///
/// # Safety
/// The value is one of a module that lives.
unsafe fn is_made_in_vectors(value: LLVMValueRef, seen: &mut HashSet<LLVMValueRef>) -> bool {
    // SAFETY: operands are asked for of an instruction alone, and so many as it has; an extension has an integer.
    unsafe {
        if LLVMIsAInstruction(value).is_null() || !seen.insert(value) {
            return false;
        }
        let operand = |i| LLVMGetOperand(value, i);
        match LLVMGetInstructionOpcode(value) {
            LLVMOpcode::LLVMZExt | LLVMOpcode::LLVMSExt if is_condition(operand(0)) => true,
            LLVMOpcode::LLVMCall if is_through_register(value, "=v") => true,
            LLVMOpcode::LLVMLoad => false,
            _ => (0..LLVMGetNumOperands(value) as u32).any(|i| is_made_in_vectors(operand(i), seen)),
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

    /// Statements on a size, on one more where there is a rest, and on what was in a vector register; LLVM can't make machine code of
    /// the latter two.
    const STATEMENTS: &str = r#"
        define amdgpu_kernel void @k(i64 %size, i64 %rest, ptr addrspace(1) %to) {
          %is = icmp ne i64 %rest, 0
          %one = zext i1 %is to i64
          %all = add i64 %size, %one
          %in = call double asm "", "=v,0"(double 2.0)
          %part = fptosi double %in to i64
          %a = call i64 asm "", "=s,0"(i64 %size)
          %b = call i64 asm "", "=s,0"(i64 %all)
          %c = call i64 asm "", "=s,0"(i64 %part)
          %two = add i64 %a, %b
          %sum = add i64 %two, %c
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
            let text = ir.module.to_string();
            let reads =
                ["all", "part"].map(|number| format!("@llvm.amdgcn.readfirstlane.i64(i64 %{number})"));
            assert!(reads.iter().all(|read| text.contains(read)), "{text}");
            assert_eq!(text.matches("call i64 @llvm.amdgcn.readfirstlane").count(), reads.len());
            machine.emit("k", &ir.module, FileType::Assembly).unwrap();
        }
    }
}
