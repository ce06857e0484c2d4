//! CPU kernels compiled into this process.

use crate::cpu;
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::Options;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use tile_ir::Instance;
use tile_ir::abi::{CpuEntry, Launch};

/// A kernel whose native code is in this process, for as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub struct CpuKernel {
    entry: CpuEntry,
    launch: Launch,
}

impl CpuKernel {
    /// The native entry.
    pub fn entry(&self) -> CpuEntry {
        self.entry
    }

    /// What a launch needs to know.
    pub fn launch(&self) -> Launch {
        self.launch
    }
}

/// Compiles an instance for the processor that runs this.
///
/// The code is never unloaded: kernels are few, small and cached by their callers, and a function pointer
/// that lives as long as the process needs no owner.
///
/// # Errors
/// [`Error`] where the kernel can't be compiled.
pub fn compile_cpu(instance: &Instance, options: &Options) -> Result<CpuKernel, Error> {
    let optimized = options.prepared(instance);
    let context: &'static Context = Box::leak(Box::new(Context::create()));
    let machine = Machine::host(options.cpu)?;
    let symbol = options.symbol_of(&instance.name);
    let (module, launch) = cpu::emit(context, &optimized, &machine, &symbol)?;
    let refused = |message: String| Error::Llvm { kernel: instance.name.clone(), message };
    let engine = module
        .create_jit_execution_engine(OptimizationLevel::Aggressive)
        .map_err(|message| refused(message.to_string()))?;
    let address = engine.get_function_address(&symbol).map_err(|error| refused(error.to_string()))?;
    // The engine owns the code, and the module shares its context: both stay.
    std::mem::forget((engine, module));
    // SAFETY: the address is that of the function `cpu::emit` defined under this symbol, with the signature of
    // `CpuEntry`, and its code is never freed.
    let entry = unsafe { std::mem::transmute::<usize, CpuEntry>(address) };
    Ok(CpuKernel { entry, launch })
}
