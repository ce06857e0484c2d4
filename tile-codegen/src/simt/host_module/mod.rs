//! A GPU's module made into one for the host: the same instructions, with calls of [`super::runtime`] in place
//! of the target's instructions, and before every access to shared or global memory a call that judges it.
//!
//! Shared memory's one array becomes an address that the runtime gives ([`shared`]). Nothing else of the code changes,
//! so what runs is what the target's back end gets.

mod calls;
mod shared;
mod waiting;
mod watch;

pub(super) use shared::WINDOW;

use super::instruction::Program;
use super::runtime::SHARED;
use super::stack;
use crate::emit::Ir;
use crate::llvm::Machine;
use crate::simt::generation::Generation;
use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::LLVMStoreSizeOfType;
use inkwell::targets::TargetData;
use inkwell::types::{AsTypeRef, BasicTypeEnum};
use inkwell::values::{AsValueRef, FunctionValue};
use std::collections::HashSet;
use std::ffi::CString;
use tile_ir::Loc;
use tile_ir::target::SharedBanks;

/// The address spaces that are watched, on NVIDIA's and AMD's targets alike. A generic address may be one of either.
const GENERIC: u32 = 0;
const GLOBAL: u32 = 1;
const SHARED_SPACE: u32 = 3;
/// That of shared memory of the blocks of a cluster.
const CLUSTER_SPACE: u32 = 7;
/// That of tensor memory on NVIDIA's targets: its addresses are numbers that only instructions of its own take.
const TENSOR_SPACE: u32 = 6;

/// What becomes of a module.
pub(super) struct Rewritten {
    /// What the code refers to by numbers.
    pub(super) program: Program,
    /// Bytes of stack that a thread needs.
    pub(super) stack: usize,
}

/// The GPU whose module it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gpu {
    /// What it makes of instructions.
    pub(super) generation: Generation,
    /// Lanes per warp.
    pub(super) warp: u32,
    /// How its shared memory serves them.
    pub(super) banks: SharedBanks,
}

/// The host's features but for instructions that give other numbers than a GPU's. LLVM 22 computes `llvm.maximumnum` and
/// `llvm.minimumnum` by `VFPCLASS` (AVX-512DQ), where one operand is known to be no NaN, so that they give the other one if
/// that is a NaN; the emitters of native code have instructions of their own for both.
fn right_features(host: &Machine) -> String {
    if cfg!(target_arch = "x86_64") { format!("{},-avx512dq", host.features) } else { host.features.clone() }
}

/// Rewrites the module of one kernel for the host, and adds `entry`, which takes the slots.
///
/// # Errors
/// What the executor can't run, in words.
pub(super) fn rewrite<'c>(
    ir: &Ir<'c>,
    kernel: FunctionValue<'c>,
    entry: &str,
    gpu: Gpu,
    host: &Machine,
) -> Result<Rewritten, String> {
    host.prepare(&ir.module);
    kernel.set_call_conventions(0);
    let features = right_features(host);
    for (key, value) in [("target-cpu", &host.cpu), ("target-features", &features)] {
        kernel.add_attribute(AttributeLoc::Function, ir.context.create_string_attribute(key, value));
    }
    let by_value = Attribute::get_named_enum_kind_id("byval");
    for parameter in 0..kernel.count_params() {
        // What a launch copies into the kernel's parameters stays where the caller has it.
        kernel.remove_enum_attribute(AttributeLoc::Param(parameter), by_value);
    }
    let own = instructions(kernel.as_value_ref());
    let mut rewriter = Rewriter::new(ir, kernel, gpu, host.layout());
    rewriter.show_waiting_loops(kernel.as_value_ref());
    rewriter.replace_shared_memory(kernel)?;
    for instruction in own {
        rewriter.instruction(instruction)?;
    }
    rewriter.size_buffers();
    let stack = rewriter.stack_bytes(kernel)?;
    add_entry(ir, kernel, entry);
    Ok(Rewritten { program: rewriter.program, stack })
}

/// The function that loads a kernel's parameters from slots. The slot of a parameter that a launch would copy, such as a
/// tensor map, is its address.
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

fn instructions(function: LLVMValueRef) -> Vec<LLVMValueRef> {
    blocks_of(function).into_iter().flat_map(instructions_of).collect()
}

fn blocks_of(function: LLVMValueRef) -> Vec<LLVMBasicBlockRef> {
    let some = |block: LLVMBasicBlockRef| (!block.is_null()).then_some(block);
    // SAFETY: the function is alive, and nothing is changed while its list is walked.
    unsafe {
        let first = some(LLVMGetFirstBasicBlock(function));
        std::iter::successors(first, |&block| some(LLVMGetNextBasicBlock(block))).collect()
    }
}

fn instructions_of(block: LLVMBasicBlockRef) -> Vec<LLVMValueRef> {
    let some = |instruction: LLVMValueRef| (!instruction.is_null()).then_some(instruction);
    // SAFETY: the block is alive, and nothing is changed while its list is walked.
    unsafe {
        let first = some(LLVMGetFirstInstruction(block));
        std::iter::successors(first, |&instruction| some(LLVMGetNextInstruction(instruction))).collect()
    }
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
    gpu: Gpu,
    layout: TargetData,
    program: Program,
    /// The address of shared memory, which the kernel asks for first.
    base: LLVMValueRef,
    /// Places for the buffers of operands and results, and the bytes that they need.
    buffers: [LLVMValueRef; 2],
    needed: [usize; 2],
    /// The basic blocks of loops in which threads may wait for another block.
    waiting: HashSet<LLVMBasicBlockRef>,
    /// The atomic reads by which a thread may wait.
    asking: HashSet<LLVMValueRef>,
}

// SAFETY of the blocks below: every value comes from the module that `ir` owns, its kind is asked before it is
// used as that kind, and an instruction is erased only after its last use was replaced.
impl<'a, 'c> Rewriter<'a, 'c> {
    fn new(ir: &'a Ir<'c>, kernel: FunctionValue<'c>, gpu: Gpu, layout: TargetData) -> Rewriter<'a, 'c> {
        let null = std::ptr::null_mut();
        let mut rewriter = Rewriter {
            ir,
            gpu,
            layout,
            program: Program::default(),
            base: null,
            buffers: [null; 2],
            needed: [0; 2],
            waiting: HashSet::new(),
            asking: HashSet::new(),
        };
        // SAFETY: as said above.
        unsafe {
            let first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(kernel.as_value_ref()));
            let builder = rewriter.before(first);
            let byte = ir.context.i8_type().as_type_ref();
            let pointer = ir.context.ptr_type(AddressSpace::from(SHARED_SPACE as u16)).as_type_ref();
            rewriter.base = rewriter.call_runtime(SHARED, &[], Some(pointer));
            rewriter.buffers = [c"operands", c"results"].map(|name| {
                let none = LLVMConstInt(ir.context.i64_type().as_type_ref(), 0, 0);
                LLVMBuildArrayAlloca(builder, byte, none, name.as_ptr())
            });
        }
        rewriter
    }

    fn instruction(&mut self, instruction: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            match LLVMGetInstructionOpcode(instruction) {
                LLVMOpcode::LLVMLoad => {
                    return self.watch(instruction, 0, LLVMTypeOf(instruction), [true, false]);
                }
                LLVMOpcode::LLVMStore => {
                    let ty = LLVMTypeOf(LLVMGetOperand(instruction, 0));
                    return self.watch(instruction, 1, ty, [false, true]);
                }
                LLVMOpcode::LLVMAtomicRMW | LLVMOpcode::LLVMAtomicCmpXchg => {
                    let ty = LLVMTypeOf(LLVMGetOperand(instruction, 1));
                    return self.watch(instruction, 0, ty, [true, true]);
                }
                LLVMOpcode::LLVMFence => return self.fence(instruction),
                LLVMOpcode::LLVMCall => return self.call(instruction),
                LLVMOpcode::LLVMPtrToInt => self.number_of_pointer(instruction),
                LLVMOpcode::LLVMIntToPtr => self.pointer_of_number(instruction),
                _ => {}
            }
        }
        Ok(())
    }

    /// The buffers get the size that the largest instruction needs.
    fn size_buffers(&self) {
        for (buffer, needed) in self.buffers.iter().zip(self.needed) {
            // SAFETY: the buffer is an allocation whose first operand is the number of bytes.
            unsafe {
                LLVMSetOperand(*buffer, 0, self.constant(needed.max(1) as u64));
                LLVMSetAlignment(*buffer, 16);
            }
        }
    }

    /// Bytes of stack that suffice for a thread: unoptimised code keeps every value there, wide ones in several
    /// forms.
    fn stack_bytes(&self, kernel: FunctionValue<'_>) -> Result<usize, String> {
        const FORMS: usize = 4;
        let mut bytes = 0usize;
        for instruction in instructions(kernel.as_value_ref()) {
            // SAFETY: as said above.
            let own = unsafe {
                match LLVMGetInstructionOpcode(instruction) {
                    LLVMOpcode::LLVMAlloca => {
                        let element = self.store_size(LLVMGetAllocatedType(instruction));
                        let count = LLVMGetOperand(instruction, 0);
                        if LLVMIsAConstantInt(count).is_null() {
                            return Err("the executor of GPU code knows allocations of constant size alone"
                                .to_owned());
                        }
                        element.saturating_mul(LLVMConstIntGetZExtValue(count) as usize)
                    }
                    _ if LLVMGetTypeKind(LLVMTypeOf(instruction))
                        == inkwell::llvm_sys::LLVMTypeKind::LLVMVoidTypeKind =>
                    {
                        0
                    }
                    _ => FORMS * self.store_size(LLVMTypeOf(instruction)).max(8),
                }
            };
            bytes = bytes.saturating_add(own);
        }
        let bytes = (bytes + stack::LEAST_BYTES / 4).max(stack::LEAST_BYTES).next_multiple_of(1 << 16);
        if bytes > stack::MOST_BYTES {
            return Err(format!(
                "a thread would need {bytes} bytes of stack in the executor of GPU code, which gives up to {}; run it \
                 with more threads, or with smaller tiles",
                stack::MOST_BYTES
            ));
        }
        Ok(bytes)
    }

    fn store_size(&self, ty: LLVMTypeRef) -> usize {
        // SAFETY: the type is sized: a value has it, or memory is allocated for it.
        unsafe { LLVMStoreSizeOfType(self.layout.as_mut_ptr(), ty) as usize }
    }

    fn word(&self) -> LLVMTypeRef {
        self.ir.context.i64_type().as_type_ref()
    }

    fn constant(&self, word: u64) -> LLVMValueRef {
        // SAFETY: the type is an integer's.
        unsafe { LLVMConstInt(self.word(), word, 0) }
    }

    /// The builder, before an instruction and with its place.
    unsafe fn before(&self, instruction: LLVMValueRef) -> LLVMBuilderRef {
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
