//! Code that the build script compiled, as the executable holds it.

pub use tile_ir::Variant;
use tile_ir::abi::{CpuEntry, Launch};
pub use tile_ir::specialize::Binding;

/// One instance of a kernel for one target.
#[derive(Debug)]
pub struct Embedded {
    /// The target: `cpu`, `sm_90a`, `gfx942`.
    pub target: &'static str,
    /// What the compile-time parameters were bound to, in the order of the kernel's generics.
    pub bindings: &'static [(&'static str, Binding)],
    /// What the code relies on.
    pub variant: Variant,
    /// The code.
    pub code: EmbeddedCode,
    /// The entry's symbol.
    pub symbol: &'static str,
    /// What a launch needs to know.
    pub launch: Launch,
    /// What a launch makes tensor maps of, as [`tile_ir::text::parse_tensor_map`] reads it.
    pub tensor_maps: &'static [&'static str],
}

/// Code in the form that its device takes.
#[derive(Debug)]
pub enum EmbeddedCode {
    /// A native function of this executable.
    Cpu {
        /// The instruction set that it uses, by its name in [`tile_ir::target::CPU_LEVELS`]: `x86-64-v3`, `armv8-a`.
        level: &'static str,
        /// The function.
        entry: CpuEntry,
    },
    /// PTX, assembled by the driver where there is no machine code of it that it takes.
    Ptx {
        /// The PTX.
        text: &'static str,
        /// What `ptxas` made of it when the program was built.
        cubin: Option<&'static [u8]>,
    },
    /// A linked AMD code object.
    Hsaco(&'static [u8]),
    /// None, because the target can't hold the instance: what it needs, and what there is.
    LeftOut(&'static str),
}

/// What a launch needs to know: threads per block, shared and scratch bytes, whether blocks share the grid, how
/// many run together, and how many have each place of the grid.
pub const fn launch(
    threads: u32,
    shared_bytes: u32,
    scratch_bytes: u64,
    shares_grid: bool,
    cluster: u32,
    blocks_per_tile: u32,
) -> Launch {
    Launch { threads, shared_bytes, scratch_bytes, shares_grid, cluster, blocks_per_tile }
}

/// An instance that a target can't hold, for this reason.
pub const fn left_out(
    target: &'static str,
    bindings: &'static [(&'static str, Binding)],
    reason: &'static str,
) -> Embedded {
    Embedded {
        target,
        bindings,
        variant: Variant::General,
        code: EmbeddedCode::LeftOut(reason),
        symbol: "",
        launch: launch(0, 0, 0, false, 0, 0),
        tensor_maps: &[],
    }
}
