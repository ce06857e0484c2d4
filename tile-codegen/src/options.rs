//! Choices of a compilation that don't change what the kernel means.

use tile_ir::{Instance, passes};

/// The instruction set that CPU code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CpuLevel {
    /// Everything that the machine running the compiler has.
    #[default]
    Host,
    /// x86-64-v2: SSE4.2, every processor since 2009.
    V2,
    /// x86-64-v3: AVX2, FMA, F16C.
    V3,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    V4,
}

impl CpuLevel {
    /// The levels that ahead-of-time code is made for, the best first.
    pub const EMBEDDED: &[CpuLevel] = &[CpuLevel::V4, CpuLevel::V3, CpuLevel::V2];

    /// The psABI's name of the level; `host` for the host.
    pub const fn name(self) -> &'static str {
        match self {
            CpuLevel::Host => "host",
            CpuLevel::V2 => "x86-64-v2",
            CpuLevel::V3 => "x86-64-v3",
            CpuLevel::V4 => "x86-64-v4",
        }
    }
}

/// Options of a compilation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The entry's symbol; the kernel's name if absent. Objects that are linked together need distinct ones.
    pub symbol: Option<String>,
    /// The instruction set of CPU code.
    pub cpu: CpuLevel,
    /// Emits the instance as it is, without [`tile_ir::passes`]: code with and without them must agree.
    pub skip_passes: bool,
}

impl Options {
    /// The instance that is emitted.
    pub(crate) fn prepared(&self, instance: &Instance) -> Instance {
        if self.skip_passes { instance.clone() } else { passes::optimize(instance.clone()) }
    }

    /// The entry's symbol for a kernel of this name.
    pub(crate) fn symbol_of(&self, kernel: &str) -> String {
        self.symbol.clone().unwrap_or_else(|| kernel.to_owned())
    }
}
