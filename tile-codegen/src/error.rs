//! Why a kernel can't be compiled for a target, or be run by the executor.

use crate::simt::RunError;
use tile_ir::Loc;
use tile_ir::abi::BindError;

/// Why a kernel can't be compiled for a target, or be run by the [executor](crate::simt).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel needs more of a block's shared memory than the target has.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of shared memory per block, but {target} has {available}; use \
         smaller tiles{}", place(*loc)
    )]
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes that a block may have.
        available: u64,
        /// The op that needs most.
        loc: Loc,
    },
    /// A tile that doesn't fit the registers of a block's threads.
    #[error(
        "kernel `{kernel}`: {tile} takes {needed} registers per thread on {target}, more than the {available} \
         that this compiler spends on one tile; use a smaller tile{}", place(*loc)
    )]
    Registers {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// The tile's type.
        tile: String,
        /// Registers per thread.
        needed: usize,
        /// The limit.
        available: usize,
        /// The op that makes it.
        loc: Loc,
    },
    /// A CPU that code can't be generated for.
    #[error("{0}")]
    Host(String),
    /// LLVM refused the module: a bug of this crate.
    #[error(
        "LLVM refused the code of kernel `{kernel}`; this is a bug of tile-codegen, please report it: {message}"
    )]
    Llvm {
        /// The kernel.
        kernel: String,
        /// LLVM's words.
        message: String,
    },
    /// The linker for AMD code objects is missing or failed.
    #[error("linking the code object of kernel `{kernel}` failed: {message}")]
    Link {
        /// The kernel.
        kernel: String,
        /// What was tried and what came of it.
        message: String,
    },
    /// Arguments that don't fit the kernel that they are to be run with.
    #[error(transparent)]
    Arguments(#[from] BindError),
    /// A run on simulated threads that ended early.
    #[error(transparent)]
    Run(#[from] RunError),
}

fn place(loc: Loc) -> String {
    if loc.is_known() { format!(" (line {loc})") } else { String::new() }
}
