//! Floats are added to tensors by instructions on AMD's GPUs, of which some have none for memory that the host shares.
//!
//! LLVM makes a loop that compares and exchanges of such an addition unless it is told that the memory is the GPU's own, and
//! that subnormal numbers may be zeros, as they are for PTX's `red` (LLVM's AMDGPU usage guide, "Metadata":
//! `amdgpu.no.fine.grained.memory`, `amdgpu.no.remote.memory`, `amdgpu.ignore.denormal.mode`). Tensors of AMD's GPUs lie in
//! memory that the runtime allocates there, or that its owner says to be such. An addition whose scope is the system's isn't told so.

use crate::emit::Ir;
use inkwell::llvm_sys::LLVMAtomicRMWBinOp;
use inkwell::llvm_sys::core::{LLVMGetAtomicRMWBinOp, LLVMGetAtomicSyncScopeID};
use inkwell::values::{AsValueRef, InstructionOpcode, InstructionValue};

/// What is said of an addition. The last of these matters on gfx90a alone, which otherwise compares and exchanges f32.
const SAID: [&str; 3] =
    ["amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory", "amdgpu.ignore.denormal.mode"];

/// The scopes within which the host doesn't matter, by LLVM's names.
const OF_THE_GPU: [&str; 2] = ["workgroup", "agent"];

/// Says so of every addition of floats within the GPU.
pub(in crate::gpu) fn say(ir: &Ir<'_>) {
    let scopes = OF_THE_GPU.map(|name| ir.scope(name));
    for instruction in ir.instructions() {
        if adds_floats(instruction, &scopes) {
            for name in SAID {
                let nothing = ir.context.metadata_node(&[]);
                let said = instruction.set_metadata(nothing, ir.context.get_kind_id(name));
                said.expect("an instruction takes metadata");
            }
        }
    }
}

fn adds_floats(instruction: InstructionValue<'_>, scopes: &[u32]) -> bool {
    // SAFETY: it is an instruction of a module that lives, and what is asked of it is asked of an atomic update alone.
    instruction.get_opcode() == InstructionOpcode::AtomicRMW
        && unsafe {
            LLVMGetAtomicRMWBinOp(instruction.as_value_ref()) == LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd
                && scopes.contains(&LLVMGetAtomicSyncScopeID(instruction.as_value_ref()))
        }
}
