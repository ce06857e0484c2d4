//! GPU kernels run on the host, thread by thread, to prove the generated code without a GPU.
//!
//! The LLVM module that the back end of a GPU gets is rewritten for the host (`host_module`): its intrinsics
//! become calls of `runtime`, and every access to shared and global memory is judged before it is made.
//! Each GPU thread is a coroutine (`block`); they take turns in a fixed order, so that a run is reproducible.
//! `shadow` knows for every byte who touched it since the last barrier, so a missing barrier is found
//! whatever order the threads had; `global` does the same among blocks. A [`Fault`] names the thread, the line
//! of the kernel's source, and the other party.
//!
//! What isn't proved: LLVM's own passes for the target, instruction selection, registers, and what devices
//! reorder beyond the model.

mod block;
mod fault;
mod global;
mod host_module;
mod runtime;
mod shadow;
#[cfg(test)]
mod tests;

pub use fault::{Earlier, Fault, Memory, Problem};

use crate::emit::Ir;
use crate::error::Error;
use crate::gpu;
use crate::llvm::Machine;
use crate::options::CpuLevel;
use block::{Geometry, Start, ThreadEntry};
use global::Global;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use std::ptr;
use tile_ir::abi::KernelAbi;
use tile_ir::{Instance, TargetDesc, log, passes};

/// A GPU kernel in this process.
pub struct SimtKernel {
    entry: ThreadEntry,
    /// What the entry's code lies in.
    _code: Code,
    abi: KernelAbi,
    threads: u32,
    warp: u32,
    shared_bytes: usize,
}

/// What a run did besides changing memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What blocks asked to be brought near, in the order of the run: the addresses of lines, and those of copies with
    /// their bytes.
    pub prefetched: Vec<(u64, Option<u64>)>,
}

/// Code in memory. The order of the fields is that in which they may be dropped.
struct Code {
    _engine: ExecutionEngine<'static>,
    _module: gpu::Module<'static>,
    _context: Box<Context>,
}

/// Alignment of a block's shared memory: what the largest swizzle needs.
const SHARED_ALIGNMENT: usize = 1024;
const KERNEL: &str = "tile_simt_kernel";
const ENTRY: &str = "tile_simt_entry";

/// Compiles an instance as for `target`, but for blocks of `threads` threads if that is given.
///
/// # Errors
/// As [`crate::compile`], and where the executor doesn't know an instruction of the kernel.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn compile(instance: &Instance, target: &TargetDesc, threads: Option<u32>) -> Result<SimtKernel, Error> {
    compile_changed(instance, target, threads, &mut |_| {})
}

/// [`compile`] of a module that is changed first: for tests that take something away.
fn compile_changed(
    instance: &Instance,
    target: &TargetDesc,
    threads: Option<u32>,
    change: &mut dyn FnMut(&Ir<'_>),
) -> Result<SimtKernel, Error> {
    let instance = passes::optimize(instance.clone());
    let context = Box::new(Context::create());
    // SAFETY: `Code` drops the context after everything that borrows it, and a box doesn't move its content.
    let lent: &'static Context = unsafe { &*ptr::from_ref(context.as_ref()) };
    let module = gpu::Module::of(lent, &instance, target, KERNEL, threads, gpu::Places::Source)?;
    change(&module.ir);
    let refused = |message: String| Error::Llvm { kernel: instance.name.clone(), message };
    module.ir.module.verify().map_err(|message| refused(message.to_string()))?;
    let host = Machine::host(CpuLevel::Host)?;
    let kernel = module.ir.module.get_function(KERNEL).expect("the module has the kernel");
    let imports = host_module::rewrite(&module.ir, kernel, ENTRY, &host).map_err(refused)?;
    module.ir.module.verify().map_err(|message| refused(message.to_string()))?;
    let engine = module
        .ir
        .module
        .create_jit_execution_engine(OptimizationLevel::None)
        .map_err(|message| refused(message.to_string()))?;
    for (symbol, address) in imports {
        if let Some(function) = module.ir.module.get_function(symbol) {
            engine.add_global_mapping(&function, address);
        }
    }
    let address = engine.get_function_address(ENTRY).map_err(|error| refused(error.to_string()))?;
    let (threads, shared_bytes) = (module.launch.threads, module.shared_bytes as usize);
    let code = Code { _engine: engine, _module: module, _context: context };
    // SAFETY: the address is that of the function `host_module` added, with the signature of `ThreadEntry`.
    let entry = unsafe { std::mem::transmute::<usize, ThreadEntry>(address) };
    Ok(SimtKernel {
        entry,
        _code: code,
        abi: KernelAbi::of(&instance),
        threads,
        warp: target.warp,
        shared_bytes,
    })
}

impl SimtKernel {
    /// Threads per block.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Runs blocks `0..blocks`, one after the other.
    ///
    /// # Safety
    /// The slots are as [`tile_ir::abi`] says for the kernel's instance, and tensors are as large as their
    /// shapes.
    ///
    /// # Errors
    /// The first fault.
    pub unsafe fn run(&self, slots: &[u64], blocks: u64) -> Result<Trace, Fault> {
        let mut global = Global::of(&self.abi, slots);
        if self.abi.logs {
            let start = slots[self.abi.log_slot()];
            // SAFETY: the caller vouches for the slots, and a log begins with its header.
            let capacity = unsafe { *(start as *const u64).add(log::CAPACITY) } as usize;
            global.add("the log", start, (log::HEADER_WORDS + capacity) * size_of::<u64>());
        }
        // Bytes that a kernel forgets to write are not conveniently zero.
        let mut memory = vec![0xa5u8; self.shared_bytes + SHARED_ALIGNMENT];
        let offset = memory.as_ptr().align_offset(SHARED_ALIGNMENT);
        let shared_address = memory[offset..].as_mut_ptr();
        let geometry = Geometry { threads: self.threads, warp: self.warp, blocks };
        let mut epoch = 1;
        for number in 0..blocks {
            global.enter(number);
            let (shared_bytes, global) = (self.shared_bytes, &mut global);
            let start = Start { number, geometry, shared_address, shared_bytes, global, epoch };
            // SAFETY: the code is that of `compile`, and the caller vouches for the slots.
            epoch = unsafe { block::run(self.entry, slots.as_ptr(), start) }?;
        }
        Ok(Trace { prefetched: global.prefetched })
    }
}
