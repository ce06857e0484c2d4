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
    /// x86-64-v4 and what multiplies pairs of bf16 and of bytes: AVX-512 BF16, VNNI.
    V4Pairs,
}

impl CpuLevel {
    /// The levels that ahead-of-time code is made for, the best first. Of [`CpuLevel::V4Pairs`] only for kernels that
    /// multiply such pairs: others would be the same.
    pub const EMBEDDED: &[CpuLevel] = &[CpuLevel::V4Pairs, CpuLevel::V4, CpuLevel::V3, CpuLevel::V2];

    /// The psABI's name of the level, and what it has beyond; `host` for the host.
    pub const fn name(self) -> &'static str {
        match self {
            CpuLevel::Host => "host",
            CpuLevel::V2 => "x86-64-v2",
            CpuLevel::V3 => "x86-64-v3",
            CpuLevel::V4 => "x86-64-v4",
            CpuLevel::V4Pairs => "x86-64-v4-pairs",
        }
    }

    /// LLVM's processor and the features that are asked for beyond its own; `None` for the host's.
    pub(crate) const fn processor(self) -> Option<(&'static str, &'static str)> {
        match self {
            CpuLevel::Host => None,
            CpuLevel::V4Pairs => Some((CpuLevel::V4.name(), "+avx512bf16,+avx512vnni")),
            level => Some((level.name(), "")),
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
