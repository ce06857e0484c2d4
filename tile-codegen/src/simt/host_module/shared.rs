//! Shared memory: the module's array becomes memory of the executor, whose addresses as numbers are those of a window
//! as on a device.

use super::{Rewriter, SHARED_SPACE, instructions};
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMTypeRef, LLVMValueRef};
use inkwell::values::{AsValueRef, FunctionValue};

/// The number that a pointer to the first byte of shared memory is. Devices keep the beginning of the window for
/// themselves, so a kernel that relies on 0 is wrong.
pub(in crate::simt) const WINDOW: u64 = 1024;

// SAFETY of the blocks below: as in the parent module.
impl Rewriter<'_, '_> {
    /// Uses of the module's shared array become uses of what the runtime says at the kernel's start.
    pub(super) fn replace_shared_memory(&self, kernel: FunctionValue<'_>) -> Result<(), String> {
        let arrays = self.ir.module.get_globals();
        let arrays: Vec<_> =
            arrays.filter(|global| global_space(global.as_value_ref()) == SHARED_SPACE).collect();
        let [array] = arrays.as_slice() else {
            return if arrays.is_empty() {
                Ok(())
            } else {
                Err("the executor of GPU code knows one array of shared memory".to_owned())
            };
        };
        let array = array.as_value_ref();
        let users = instructions(kernel.as_value_ref());
        // SAFETY: as said above.
        unsafe {
            for user in users {
                for i in 0..LLVMGetNumOperands(user) as u32 {
                    let operand = LLVMGetOperand(user, i);
                    if !mentions(operand, array) {
                        continue;
                    }
                    self.before(if LLVMIsAPHINode(user).is_null() {
                        user
                    } else {
                        terminator(LLVMGetIncomingBlock(user, i))
                    });
                    LLVMSetOperand(user, i, self.expanded(operand, array)?);
                }
            }
        }
        Ok(())
    }

    /// A constant that mentions the array, as instructions on the executor's memory.
    unsafe fn expanded(&self, constant: LLVMValueRef, array: LLVMValueRef) -> Result<LLVMValueRef, String> {
        if constant == array {
            return Ok(self.base);
        }
        // SAFETY: as said above.
        unsafe {
            if !mentions(constant, array) {
                return Ok(constant);
            }
            let operand = |i| self.expanded(LLVMGetOperand(constant, i), array);
            let builder = self.ir.builder.as_mut_ptr();
            match LLVMGetConstOpcode(constant) {
                LLVMOpcode::LLVMGetElementPtr => {
                    let count = LLVMGetNumOperands(constant) as u32;
                    let mut indices = (1..count).map(operand).collect::<Result<Vec<_>, _>>()?;
                    let ty = LLVMGetGEPSourceElementType(constant);
                    let pointer = operand(0)?;
                    let count = indices.len() as u32;
                    Ok(LLVMBuildGEP2(builder, ty, pointer, indices.as_mut_ptr(), count, c"".as_ptr()))
                }
                LLVMOpcode::LLVMPtrToInt => {
                    let pointer = operand(0)?;
                    if is_shared_pointer(LLVMTypeOf(pointer)) {
                        return Ok(self.offset_in_window(pointer, LLVMTypeOf(constant)));
                    }
                    Ok(LLVMBuildPtrToInt(builder, pointer, LLVMTypeOf(constant), c"".as_ptr()))
                }
                LLVMOpcode::LLVMAddrSpaceCast => {
                    Ok(LLVMBuildAddrSpaceCast(builder, operand(0)?, LLVMTypeOf(constant), c"".as_ptr()))
                }
                opcode => {
                    Err(format!("the executor of GPU code can't compute with shared memory by {opcode:?}"))
                }
            }
        }
    }

    /// A pointer to shared memory as a number is its offset in the window.
    pub(super) unsafe fn number_of_pointer(&self, cast: LLVMValueRef) {
        // SAFETY: as said above.
        unsafe {
            let pointer = LLVMGetOperand(cast, 0);
            if !is_shared_pointer(LLVMTypeOf(pointer)) {
                return;
            }
            self.before(cast);
            let number = self.offset_in_window(pointer, LLVMTypeOf(cast));
            LLVMReplaceAllUsesWith(cast, number);
            LLVMInstructionEraseFromParent(cast);
        }
    }

    unsafe fn offset_in_window(&self, pointer: LLVMValueRef, ty: LLVMTypeRef) -> LLVMValueRef {
        let builder = self.ir.builder.as_mut_ptr();
        // SAFETY: the pointer is one, and the type an integer's.
        unsafe {
            let [address, base] =
                [pointer, self.base].map(|it| LLVMBuildPtrToInt(builder, it, self.word(), c"".as_ptr()));
            let offset = LLVMBuildSub(builder, address, base, c"".as_ptr());
            let number = LLVMBuildAdd(builder, offset, self.constant(WINDOW), c"".as_ptr());
            LLVMBuildIntCast2(builder, number, ty, 0, c"".as_ptr())
        }
    }

    /// A number in the window is a pointer to shared memory.
    pub(super) unsafe fn pointer_of_number(&self, cast: LLVMValueRef) {
        // SAFETY: as said above.
        unsafe {
            if !is_shared_pointer(LLVMTypeOf(cast)) {
                return;
            }
            let builder = self.before(cast);
            let number = LLVMBuildIntCast2(builder, LLVMGetOperand(cast, 0), self.word(), 0, c"".as_ptr());
            let base = LLVMBuildPtrToInt(builder, self.base, self.word(), c"".as_ptr());
            let offset = LLVMBuildSub(builder, number, self.constant(WINDOW), c"".as_ptr());
            let address = LLVMBuildAdd(builder, base, offset, c"".as_ptr());
            let pointer = LLVMBuildIntToPtr(builder, address, LLVMTypeOf(cast), c"".as_ptr());
            LLVMReplaceAllUsesWith(cast, pointer);
            LLVMInstructionEraseFromParent(cast);
        }
    }
}

unsafe fn is_shared_pointer(ty: LLVMTypeRef) -> bool {
    // SAFETY: the kind of the type is asked first.
    unsafe {
        LLVMGetTypeKind(ty) == inkwell::llvm_sys::LLVMTypeKind::LLVMPointerTypeKind
            && LLVMGetPointerAddressSpace(ty) == SHARED_SPACE
    }
}

fn global_space(global: LLVMValueRef) -> u32 {
    // SAFETY: a global's type is a pointer's.
    unsafe { LLVMGetPointerAddressSpace(LLVMTypeOf(global)) }
}

/// Whether a constant is the array or computed from it.
unsafe fn mentions(value: LLVMValueRef, array: LLVMValueRef) -> bool {
    if value == array {
        return true;
    }
    // SAFETY: constant expressions have operands that are constants.
    unsafe {
        !LLVMIsAConstantExpr(value).is_null()
            && (0..LLVMGetNumOperands(value) as u32).any(|i| mentions(LLVMGetOperand(value, i), array))
    }
}

unsafe fn terminator(block: LLVMBasicBlockRef) -> LLVMValueRef {
    // SAFETY: a block of a verified function ends with a terminator.
    unsafe { LLVMGetBasicBlockTerminator(block) }
}
