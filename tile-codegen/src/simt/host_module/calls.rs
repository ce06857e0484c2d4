//! Calls: the target's intrinsics become the executor's instructions; those of LLVM itself stay where they touch no
//! memory, and are watched or refused where they do.

use super::waiting::keeps_nothing;
use super::watch::watched_space;
use super::{Rewriter, instructions, place};
use crate::simt::instruction::{Instruction, Slot};
use crate::simt::memory::AccessKind;
use crate::simt::operations;
use crate::simt::runtime::{EXECUTE, pack_access};
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode, LLVMTypeKind};
use inkwell::types::AsTypeRef;
use std::ffi::CStr;

/// Intrinsics of LLVM that have effects, none of them on what is watched.
const HARMLESS: [&str; 6] = [
    "llvm.assume",
    "llvm.donothing",
    "llvm.experimental.noalias.scope.decl",
    "llvm.lifetime.",
    "llvm.prefetch",
    "llvm.sideeffect",
];

// SAFETY of the blocks below: as in the parent module.
impl Rewriter<'_, '_> {
    pub(super) fn call(&mut self, call: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            let callee = LLVMGetCalledValue(call);
            if !LLVMIsAInlineAsm(callee).is_null() {
                return self.assembly(call, callee);
            }
            let mut length = 0;
            let name = LLVMGetValueName2(callee, &raw mut length);
            let name = selected(CStr::from_ptr(name).to_string_lossy().into_owned(), call);
            if let Some(operation) = operations::find(&name, self.gpu) {
                return self.bind(call, name, operation);
            }
            if LLVMIsDeclaration(callee) == 0 {
                return self.check_function(callee, &name);
            }
            let of_target = ["llvm.nvvm.", "llvm.amdgcn."].iter().any(|start| name.starts_with(start));
            if !name.starts_with("llvm.") || of_target {
                return Err(format!("the executor of GPU code has no `{name}`"));
            }
            self.generic_intrinsic(call, callee, &name)
        }
    }

    /// A function of the module may stay as it is if it touches nobody's memory.
    unsafe fn check_function(&self, function: LLVMValueRef, name: &str) -> Result<(), String> {
        let refused = || Err(format!("the executor of GPU code can't watch what the function `{name}` does"));
        // SAFETY: the callee has a body, and the kinds of values are asked first.
        unsafe {
            for instruction in instructions(function) {
                let address = match LLVMGetInstructionOpcode(instruction) {
                    LLVMOpcode::LLVMLoad | LLVMOpcode::LLVMAtomicRMW | LLVMOpcode::LLVMAtomicCmpXchg => 0,
                    LLVMOpcode::LLVMStore => 1,
                    LLVMOpcode::LLVMFence => return refused(),
                    LLVMOpcode::LLVMCall => {
                        let callee = LLVMGetCalledValue(instruction);
                        let pure = LLVMIsAInlineAsm(callee).is_null() && touches_nothing(callee);
                        if pure { continue } else { return refused() }
                    }
                    _ => continue,
                };
                if watched_space(LLVMGetOperand(instruction, address)).is_some() {
                    return refused();
                }
            }
        }
        Ok(())
    }

    unsafe fn generic_intrinsic(
        &mut self,
        call: LLVMValueRef,
        callee: LLVMValueRef,
        name: &str,
    ) -> Result<(), String> {
        // SAFETY: the callee is a function, and the kinds of operands are those of the named intrinsics.
        unsafe {
            if touches_nothing(callee) || HARMLESS.iter().any(|harmless| name.starts_with(harmless)) {
                return Ok(());
            }
            let copies = ["llvm.memcpy.", "llvm.memmove."].iter().any(|start| name.starts_with(start));
            if copies {
                self.watch_range(call, 1, false);
            }
            if copies || name.starts_with("llvm.memset.") {
                self.watch_range(call, 0, true);
                return Ok(());
            }
            Err(format!("the executor of GPU code can't watch what `{name}` does to memory"))
        }
    }

    /// Watches the bytes from an operand on, as many as the third operand says.
    unsafe fn watch_range(&mut self, call: LLVMValueRef, operand: u32, writes: bool) {
        // SAFETY: the operands are a pointer and a number.
        unsafe {
            let address = LLVMGetOperand(call, operand);
            let Some(space) = watched_space(address) else { return };
            let kind = AccessKind { bytes: 0, alignment: 1, space, reads: !writes, writes, atomic: None };
            let builder = self.before(call);
            let bytes = LLVMBuildIntCast2(builder, LLVMGetOperand(call, 2), self.word(), 0, c"".as_ptr());
            let bytes = LLVMBuildShl(builder, bytes, self.constant(32), c"".as_ptr());
            let kind = LLVMBuildOr(builder, bytes, self.constant(pack_access(kind)), c"".as_ptr());
            self.judge(call, address, kind, "copy");
        }
    }

    /// An empty statement gives its operand, of which LLVM then doesn't know more than it did.
    unsafe fn assembly(&self, call: LLVMValueRef, statement: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            let mut length = 0;
            let text = LLVMGetInlineAsmAsmString(statement, &raw mut length);
            if length != 0 {
                let text = std::slice::from_raw_parts(text.cast::<u8>(), length);
                let text = String::from_utf8_lossy(text);
                return Err(format!("the executor of GPU code can't run the assembly `{text}`"));
            }
            if LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMTypeKind::LLVMVoidTypeKind {
                let hidden = LLVMBuildFreeze(self.before(call), LLVMGetOperand(call, 0), c"".as_ptr());
                LLVMReplaceAllUsesWith(call, hidden);
            }
            LLVMInstructionEraseFromParent(call);
            Ok(())
        }
    }

    /// Puts in place of a call that of the executor's instruction.
    unsafe fn bind(
        &mut self,
        call: LLVMValueRef,
        name: String,
        operation: crate::simt::instruction::Operation,
    ) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            let operands: Vec<_> =
                (0..LLVMGetNumArgOperands(call)).map(|i| LLVMGetOperand(call, i)).collect();
            let types: Vec<_> = operands.iter().map(|&operand| LLVMTypeOf(operand)).collect();
            let results = self.elements(LLVMTypeOf(call));
            let number = self.constant(self.program.instructions.len() as u64);
            let instruction = Instruction {
                repeats: self.is_shown(call) && keeps_nothing(&name),
                name,
                place: place(call),
                operation,
                operands: self.slots(&types, 0),
                results: self.slots(&results, 1),
            };
            self.program.places += u32::from(instruction.repeats);
            let builder = self.before(call);
            for (&operand, slot) in operands.iter().zip(&instruction.operands) {
                LLVMSetAlignment(LLVMBuildStore(builder, operand, self.part(0, *slot)), 8);
            }
            self.call_runtime(EXECUTE, &[number, self.buffers[0], self.buffers[1]], None);
            if !results.is_empty() {
                let result = self.result(LLVMTypeOf(call), &results, &instruction.results);
                LLVMReplaceAllUsesWith(call, result);
            }
            LLVMInstructionEraseFromParent(call);
            self.program.instructions.push(instruction);
            Ok(())
        }
    }

    /// The types of a result's elements; none of no result.
    unsafe fn elements(&self, ty: LLVMTypeRef) -> Vec<LLVMTypeRef> {
        // SAFETY: the kind of the type is asked first.
        unsafe {
            match LLVMGetTypeKind(ty) {
                LLVMTypeKind::LLVMVoidTypeKind => Vec::new(),
                LLVMTypeKind::LLVMStructTypeKind => {
                    (0..LLVMCountStructElementTypes(ty)).map(|i| LLVMStructGetTypeAtIndex(ty, i)).collect()
                }
                _ => vec![ty],
            }
        }
    }

    fn slots(&mut self, types: &[LLVMTypeRef], buffer: usize) -> Vec<Slot> {
        let mut offset = 0;
        let slot = |&ty: &LLVMTypeRef| {
            let slot = Slot { offset, bytes: self.store_size(ty) };
            offset = (offset + slot.bytes).next_multiple_of(8);
            slot
        };
        let slots = types.iter().map(slot).collect();
        self.needed[buffer] = self.needed[buffer].max(offset);
        slots
    }

    pub(super) unsafe fn part(&self, buffer: usize, slot: Slot) -> LLVMValueRef {
        let byte = self.ir.context.i8_type().as_type_ref();
        let mut index = [self.constant(slot.offset as u64)];
        // SAFETY: the builder is positioned, and the buffer is an allocation.
        unsafe {
            let builder = self.ir.builder.as_mut_ptr();
            LLVMBuildGEP2(builder, byte, self.buffers[buffer], index.as_mut_ptr(), 1, c"".as_ptr())
        }
    }

    /// The result, read from its buffer.
    unsafe fn result(&self, ty: LLVMTypeRef, elements: &[LLVMTypeRef], slots: &[Slot]) -> LLVMValueRef {
        let builder = self.ir.builder.as_mut_ptr();
        // SAFETY: the elements are those of the type.
        unsafe {
            let load = |(&element, slot): (&LLVMTypeRef, &Slot)| {
                let loaded = LLVMBuildLoad2(builder, element, self.part(1, *slot), c"".as_ptr());
                LLVMSetAlignment(loaded, 8);
                loaded
            };
            let mut values = elements.iter().zip(slots).map(load);
            if LLVMGetTypeKind(ty) != LLVMTypeKind::LLVMStructTypeKind {
                return values.next().expect("the result has an element");
            }
            let whole = LLVMGetPoison(ty);
            values.enumerate().fold(whole, |whole, (i, value)| {
                LLVMBuildInsertValue(builder, whole, value, i as u32, c"".as_ptr())
            })
        }
    }
}

/// Whether a function's attributes say that it touches no memory.
unsafe fn touches_nothing(function: LLVMValueRef) -> bool {
    // SAFETY: the value is a function.
    unsafe {
        let kind = LLVMGetEnumAttributeKindForName(c"memory".as_ptr(), 6);
        let memory = LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind);
        !memory.is_null() && LLVMGetEnumAttributeValue(memory) == 0
    }
}

/// The name of the instruction that LLVM selects for an intrinsic: of AMD's that scale, whose scales are both known to be zero,
/// those that don't (LLVM, "AMDGPU Intrinsics").
unsafe fn selected(name: String, call: LLVMValueRef) -> String {
    // SAFETY: the intrinsic has these operands, the words of scales.
    let is_zero = |operand| unsafe {
        let word = LLVMGetOperand(call, operand);
        LLVMIsConstant(word) != 0 && LLVMIsNull(word) != 0
    };
    match name.strip_prefix("llvm.amdgcn.mfma.scale.") {
        Some(rest) if [6, 8].into_iter().all(is_zero) => format!("llvm.amdgcn.mfma.{rest}"),
        _ => name,
    }
}
