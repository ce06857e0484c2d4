//! Tile IR to native CPU code, NVIDIA PTX and AMD HSACO through LLVM.
//!
//! The back half of the pipeline is one list, [`compile`]. This is the only crate that links LLVM, and LLVM
//! answers an operation that a target lacks by ending the process, so nothing reaches it that an emitter
//! here doesn't know how to write in instructions of the target: there are no library calls.
//!
//! Knows nothing of devices, tensors or Rust syntax (but for [`build`], which runs the front end on a
//! crate's sources).

/// For tests, and LLVM in them: its library finds this allocator's functions under the names of C.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod artifact;
pub mod build;
pub mod cache;
mod checksum;
mod cpu;
mod emit;
mod error;
mod gpu;
pub mod jit;
mod llvm;
pub mod options;
pub mod simt;
mod symbol;
mod system;
mod whole_file;

pub use artifact::{Artifact, Code};
pub use error::Error;
pub use options::{Cpu, Options};
pub use system::System;

use tile_ir::target::{Architecture, CpuLevel, Family};
use tile_ir::{Instance, TargetDesc};

/// Compiles an instance for a target: passes, emission, LLVM's optimisation, machine code.
///
/// # Errors
/// [`Error`] where the target can't do what the kernel asks for, with the numbers and what to change.
pub fn compile(instance: &Instance, target: &TargetDesc, options: &Options) -> Result<Artifact, Error> {
    let optimized = options.prepared(instance, target.family);
    match target.family {
        Family::Cpu => cpu::compile(&optimized, options),
        Family::Nvptx | Family::Amdgpu => gpu::compile(&optimized, target, options),
    }
}

/// Which products of an instance's code for a GPU are slower than the target could do them, and why: what a build script
/// warns of.
pub fn remarks(instance: &Instance, target: &TargetDesc) -> Vec<String> {
    match target.family {
        Family::Cpu => Vec::new(),
        Family::Nvptx | Family::Amdgpu => {
            let scheduled = gpu::scheduled(&tile_ir::passes::optimize(instance.clone()), target);
            scheduled.iter().flat_map(|scheduled| scheduled.remarks()).map(ToString::to_string).collect()
        }
    }
}

/// The levels of an architecture at which the CPU code of an instance isn't that of a lesser one, the best first: what a build
/// script embeds.
pub fn levels_of(
    instance: &Instance,
    architecture: Architecture,
) -> impl Iterator<Item = &'static CpuLevel> + use<> {
    let prepared = cpu::over_memory(&tile_ir::passes::optimize(instance.clone()));
    architecture.levels().filter(move |level| cpu::differs(&prepared, level))
}

/// What makes up the code's identity besides the kernel: this crate's version and LLVM's.
pub fn compiler_version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("tile-codegen {} LLVM {major}.{minor}.{patch}", env!("CARGO_PKG_VERSION"))
}

/// The same, down to the sources: which of all compilers this is.
pub(crate) fn compiler() -> String {
    [&compiler_version(), env!("TILE_CODEGEN_SOURCES"), tile_ir::VERSION, tile_layout::VERSION].join(" ")
}
