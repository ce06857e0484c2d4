//! A GPU's module made into one for the host: the same instructions, with calls of [`super::runtime`] in place
//! of the target's intrinsics, and before every access to shared or global memory a call that judges it.
//!
//! Shared memory's one array becomes an address that the runtime gives. Nothing else of the code changes, so
//! what runs is what the target's back end gets.

use super::runtime::{self, ACCESS, AccessKind, Binding, FENCE, SHARED, pack_place};
use crate::emit::Ir;
use crate::llvm::Machine;
use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::llvm_sys::LLVMAtomicOrdering as Order;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::LLVMStoreSizeOfType;
use inkwell::targets::TargetData;
use inkwell::types::{AsTypeRef, BasicTypeEnum};
use inkwell::values::{AsValueRef, FunctionValue};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use tile_ir::Loc;

/// The address spaces that are watched: global and shared memory, on NVIDIA's and AMD's targets alike.
const GLOBAL: u32 = 1;
const SHARED_SPACE: u32 = 3;

/// The functions that the module calls, with their addresses.
pub(super) type Imports = BTreeMap<&'static str, usize>;

/// Rewrites the module of one kernel for the host, and adds `entry`, which takes the slots.
///
/// # Errors
/// What the executor can't run, in words.
pub(super) fn rewrite<'c>(
    ir: &Ir<'c>,
    kernel: FunctionValue<'c>,
    entry: &str,
    host: &Machine,
) -> Result<Imports, String> {
    host.prepare(&ir.module);
    kernel.set_call_conventions(0);
    for (key, value) in [("target-cpu", &host.cpu), ("target-features", &host.features)] {
        kernel.add_attribute(AttributeLoc::Function, ir.context.create_string_attribute(key, value));
    }
    let mut rewriter = Rewriter { ir, imports: runtime::support().into(), layout: host.layout() };
    rewriter.replace_shared_memory(kernel)?;
    for instruction in instructions(kernel) {
        rewriter.instruction(instruction)?;
    }
    add_entry(ir, kernel, entry);
    Ok(rewriter.imports)
}

/// The function that loads a kernel's parameters from slots.
fn add_entry<'c>(ir: &Ir<'c>, kernel: FunctionValue<'c>, name: &str) {
    let pointer = ir.context.ptr_type(AddressSpace::default());
    let function =
        ir.module.add_function(name, ir.context.void_type().fn_type(&[pointer.into()], false), None);
    ir.builder.unset_current_debug_location();
    ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
    let slots = function.get_nth_param(0).expect("the entry has a parameter").into_pointer_value();
    let word: BasicTypeEnum<'c> = ir.context.i64_type().into();
    let arguments: Vec<_> = (0i64..)
        .zip(kernel.get_type().get_param_types())
        .map(|(i, ty)| {
            let ty = BasicTypeEnum::try_from(ty).expect("a kernel's parameters are plain values");
            ir.load(ty, ir.element(word, slots, ir.i64(i)))
        })
        .collect();
    ir.call(kernel, &arguments);
    ir.return_void();
}

fn instructions(function: FunctionValue<'_>) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    // SAFETY: the function is alive, and nothing is changed while its lists are walked.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function.as_value_ref());
        while !block.is_null() {
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                found.push(instruction);
                instruction = LLVMGetNextInstruction(instruction);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    found
}

fn place(instruction: LLVMValueRef) -> Loc {
    // SAFETY: both accept an instruction without a debug location, for which they give 0.
    unsafe {
        if LLVMInstructionGetDebugLoc(instruction).is_null() {
            return Loc::UNKNOWN;
        }
        Loc::new(LLVMGetDebugLocLine(instruction), LLVMGetDebugLocColumn(instruction))
    }
}

struct Rewriter<'a, 'c> {
    ir: &'a Ir<'c>,
    imports: Imports,
    layout: TargetData,
}

// SAFETY of the blocks below: every value comes from the module that `ir` owns, its kind is asked before it is
// used as that kind, and an instruction is erased only after its last use was replaced.
impl Rewriter<'_, '_> {
    fn instruction(&mut self, instruction: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            match LLVMGetInstructionOpcode(instruction) {
                LLVMOpcode::LLVMLoad => self.watch(instruction, 0, LLVMTypeOf(instruction), [true, false]),
                LLVMOpcode::LLVMStore => {
                    let ty = LLVMTypeOf(LLVMGetOperand(instruction, 0));
                    self.watch(instruction, 1, ty, [false, true]);
                }
                LLVMOpcode::LLVMAtomicRMW | LLVMOpcode::LLVMAtomicCmpXchg => {
                    let ty = LLVMTypeOf(LLVMGetOperand(instruction, 1));
                    self.watch(instruction, 0, ty, [true, true]);
                }
                LLVMOpcode::LLVMFence => self.fence(instruction),
                LLVMOpcode::LLVMCall => return self.call(instruction),
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts the call that judges an access before it.
    unsafe fn watch(&self, instruction: LLVMValueRef, operand: u32, ty: LLVMTypeRef, access: [bool; 2]) {
        // SAFETY: the caller names the operand that is the address.
        unsafe {
            let address = LLVMGetOperand(instruction, operand);
            let space = LLVMGetPointerAddressSpace(LLVMTypeOf(address));
            if space != GLOBAL && space != SHARED_SPACE {
                return;
            }
            let order = match LLVMGetInstructionOpcode(instruction) {
                LLVMOpcode::LLVMAtomicCmpXchg => LLVMGetCmpXchgSuccessOrdering(instruction),
                _ => LLVMGetOrdering(instruction),
            };
            let (acquires, releases) = acquires_and_releases(order);
            let kind = AccessKind {
                bytes: LLVMStoreSizeOfType(self.layout.as_mut_ptr(), ty),
                alignment: u64::from(LLVMGetAlignment(instruction)).max(1),
                shared: space == SHARED_SPACE,
                reads: access[0],
                writes: access[1],
                atomic: order != Order::LLVMAtomicOrderingNotAtomic,
                acquires,
                releases,
            };
            let builder = self.before(instruction);
            let number = LLVMBuildPtrToInt(builder, address, self.word(), c"".as_ptr());
            let place = pack_place(place(instruction));
            self.call_runtime(ACCESS, &[number, self.constant(kind.pack()), self.constant(place)], None);
        }
    }

    unsafe fn fence(&self, fence: LLVMValueRef) {
        // SAFETY: as said above.
        unsafe {
            let (acquires, releases) = acquires_and_releases(LLVMGetOrdering(fence));
            self.before(fence);
            let flag =
                |flag: bool| LLVMConstInt(self.ir.context.i32_type().as_type_ref(), u64::from(flag), 0);
            self.call_runtime(FENCE, &[flag(acquires), flag(releases)], None);
        }
    }

    fn call(&mut self, call: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            let callee = LLVMGetCalledValue(call);
            if !LLVMIsAInlineAsm(callee).is_null() {
                return self.assembly(call, callee);
            }
            let mut length = 0;
            let name = LLVMGetValueName2(callee, &raw mut length);
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            if !name.starts_with("llvm.nvvm.") && !name.starts_with("llvm.amdgcn.") {
                return Ok(());
            }
            let Some(binding) = runtime::binding(&name) else {
                return Err(format!("the executor of GPU code has no `{name}`"));
            };
            self.bind(call, binding);
            Ok(())
        }
    }

    /// Puts in place of a call what the runtime has for it.
    unsafe fn bind(&mut self, call: LLVMValueRef, binding: Binding) {
        let Binding { symbol, address, operands, place: with_place } = binding;
        self.imports.insert(symbol, address);
        // SAFETY: as said above.
        unsafe {
            self.before(call);
            let mut arguments: Vec<_> = (0..operands as u32).map(|i| LLVMGetOperand(call, i)).collect();
            if with_place {
                arguments.push(self.constant(pack_place(place(call))));
            }
            let replaced = self.call_runtime(symbol, &arguments, Some(LLVMTypeOf(call)));
            LLVMReplaceAllUsesWith(call, replaced);
            LLVMInstructionEraseFromParent(call);
        }
    }

    /// An empty statement gives its operand; others are bound as intrinsics are.
    unsafe fn assembly(&mut self, call: LLVMValueRef, callee: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            let mut length = 0;
            let text = LLVMGetInlineAsmAsmString(callee, &raw mut length);
            if length != 0 {
                let text = std::slice::from_raw_parts(text.cast::<u8>(), length);
                let text = String::from_utf8_lossy(text).into_owned();
                let Some(binding) = runtime::binding(&text) else {
                    return Err(format!("the executor of GPU code can't run the assembly `{text}`"));
                };
                self.bind(call, binding);
                return Ok(());
            }
            LLVMReplaceAllUsesWith(call, LLVMGetOperand(call, 0));
            LLVMInstructionEraseFromParent(call);
            Ok(())
        }
    }

    /// Uses of the module's shared array become uses of what the runtime says at the kernel's start.
    fn replace_shared_memory(&self, kernel: FunctionValue<'_>) -> Result<(), String> {
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
        let users = instructions(kernel);
        // SAFETY: as said above.
        unsafe {
            let first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(kernel.as_value_ref()));
            self.before(first);
            let base = self.call_runtime(SHARED, &[], Some(LLVMTypeOf(array)));
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
                    LLVMSetOperand(user, i, self.expanded(operand, array, base)?);
                }
            }
        }
        Ok(())
    }

    /// A constant that mentions the array, as instructions on `base`.
    unsafe fn expanded(
        &self,
        constant: LLVMValueRef,
        array: LLVMValueRef,
        base: LLVMValueRef,
    ) -> Result<LLVMValueRef, String> {
        if constant == array {
            return Ok(base);
        }
        // SAFETY: as said above.
        unsafe {
            if !mentions(constant, array) {
                return Ok(constant);
            }
            let operand = |i| self.expanded(LLVMGetOperand(constant, i), array, base);
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
                    Ok(LLVMBuildPtrToInt(builder, operand(0)?, LLVMTypeOf(constant), c"".as_ptr()))
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

    fn word(&self) -> LLVMTypeRef {
        self.ir.context.i64_type().as_type_ref()
    }

    fn constant(&self, word: u64) -> LLVMValueRef {
        // SAFETY: the type is an integer's.
        unsafe { LLVMConstInt(self.word(), word, 0) }
    }

    /// The builder, before an instruction and with its place.
    unsafe fn before(&self, instruction: LLVMValueRef) -> inkwell::llvm_sys::prelude::LLVMBuilderRef {
        let builder = self.ir.builder.as_mut_ptr();
        // SAFETY: the instruction is in a block.
        unsafe {
            LLVMPositionBuilderBefore(builder, instruction);
            LLVMSetCurrentDebugLocation2(builder, LLVMInstructionGetDebugLoc(instruction));
        }
        builder
    }

    /// Calls a function of the runtime, which is declared at its first call.
    unsafe fn call_runtime(
        &self,
        symbol: &str,
        arguments: &[LLVMValueRef],
        result: Option<LLVMTypeRef>,
    ) -> LLVMValueRef {
        let name = CString::new(symbol).expect("a symbol has no zero byte");
        let mut arguments = arguments.to_vec();
        // SAFETY: as said above; a symbol is always called with the same types.
        unsafe {
            let mut types: Vec<_> = arguments.iter().map(|&argument| LLVMTypeOf(argument)).collect();
            let result = result.unwrap_or_else(|| self.ir.context.void_type().as_type_ref());
            let ty = LLVMFunctionType(result, types.as_mut_ptr(), types.len() as u32, 0);
            let module = self.ir.module.as_mut_ptr();
            let mut function = LLVMGetNamedFunction(module, name.as_ptr());
            if function.is_null() {
                function = LLVMAddFunction(module, name.as_ptr(), ty);
            }
            let (builder, count) = (self.ir.builder.as_mut_ptr(), arguments.len() as u32);
            LLVMBuildCall2(builder, ty, function, arguments.as_mut_ptr(), count, c"".as_ptr())
        }
    }
}

fn acquires_and_releases(order: Order) -> (bool, bool) {
    match order {
        Order::LLVMAtomicOrderingAcquire => (true, false),
        Order::LLVMAtomicOrderingRelease => (false, true),
        Order::LLVMAtomicOrderingAcquireRelease | Order::LLVMAtomicOrderingSequentiallyConsistent => {
            (true, true)
        }
        _ => (false, false),
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
