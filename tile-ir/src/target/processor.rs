//! Instruction sets of processors as data: what CPU code is compiled for, and what the machine that runs it must have.
//!
//! One table, [`CPU_LEVELS`], serves the compiler, which asks LLVM for a level's instructions, the build script, which embeds
//! code for the levels of the architecture that it builds for, and the runtime, which takes the best that its machine has.
//! Knows nothing of LLVM, nor of how a machine is asked.

use super::tiles::TILE_FEATURES;
use std::fmt;

/// A family of processors that CPU code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// AMD64.
    X86_64,
    /// Arm's 64-bit architecture.
    Aarch64,
}

impl Architecture {
    /// Every one.
    pub const ALL: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];

    /// The name that Rust has for it: in `std::env::consts::ARCH`, in `target_arch`, and in the first part of a triple.
    ///
    /// ```
    /// assert_eq!(tile_ir::target::Architecture::Aarch64.name(), "aarch64");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    /// The architecture of this name; `None` of one that no CPU code is made for.
    pub fn named(name: &str) -> Option<Architecture> {
        Architecture::ALL.into_iter().find(|architecture| architecture.name() == name)
    }

    /// That of the machine that this program is compiled for.
    pub fn host() -> Option<Architecture> {
        Architecture::named(std::env::consts::ARCH)
    }

    /// Its levels, the best first.
    pub fn levels(self) -> impl DoubleEndedIterator<Item = &'static CpuLevel> + Clone {
        CPU_LEVELS.iter().filter(move |level| level.architecture == self)
    }

    /// The level that every processor has.
    pub fn least(self) -> &'static CpuLevel {
        self.levels().next_back().expect("every architecture has levels")
    }
}

/// A set of instructions that ahead-of-time code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CpuLevel {
    /// Its name, as compilers and manuals have it.
    pub name: &'static str,
    /// The processors that may have it.
    pub architecture: Architecture,
    /// LLVM's name of a processor that has no more than this.
    pub processor: &'static str,
    /// What it has beyond the next level of its architecture, by LLVM's names: all that code for its processor may use, but
    /// for what comes with another of them, as AVX does with AVX2.
    pub features: &'static [&'static str],
    /// Whether it makes another code of every kernel, rather than of some: those with products, atomics or rows that are read from memory.
    pub is_general: bool,
    /// Elements of f32 in a vector.
    pub lanes: u64,
}

/// Every level, an architecture's best first.
///
/// x86-64: the levels of its System V ABI (processors since 2009, 2013 and 2017), and AVX-512 with what multiplies bytes
/// (`VNNI`, since 2019) and pairs of bf16 (`BF16`, since 2020); then those that also have `AVX-VNNI` (since 2023), whose first
/// caches hold 48 KiB, for kernels that bring rows there; and AMX, whose tiles multiply bf16 and bytes, on processors that gain by
/// asking memory for all that rows are read of (Sapphire Rapids, since 2023). AArch64: Advanced SIMD of the first version,
/// which every processor has; what products and atomics gain with Armv8.2-A's dot products of bytes and Armv8.1-A's atomics
/// (Neoverse N1, Cortex-A76, Apple M1); and with the products of bf16 and of bytes of mixed signs that Armv8.6-A asks for,
/// and others have (Neoverse V1 and N2, Apple M2). "Arm
/// Architecture Reference Manual for A-profile", chapter A2.
pub const CPU_LEVELS: &[CpuLevel] = &[
    CpuLevel {
        name: "x86-64-v4-tiles",
        architecture: Architecture::X86_64,
        processor: "x86-64-v4",
        features: &TILE_FEATURES,
        is_general: false,
        lanes: 16,
    },
    CpuLevel {
        name: "x86-64-v4-rows",
        architecture: Architecture::X86_64,
        processor: "x86-64-v4",
        features: &["avxvnni"],
        is_general: false,
        lanes: 16,
    },
    CpuLevel {
        name: "x86-64-v4-pairs",
        architecture: Architecture::X86_64,
        processor: "x86-64-v4",
        features: &["avx512bf16"],
        is_general: false,
        lanes: 16,
    },
    CpuLevel {
        name: "x86-64-v4-bytes",
        architecture: Architecture::X86_64,
        processor: "x86-64-v4",
        features: &["avx512vnni"],
        is_general: false,
        lanes: 16,
    },
    CpuLevel {
        name: "x86-64-v4",
        architecture: Architecture::X86_64,
        processor: "x86-64-v4",
        features: &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
        is_general: true,
        lanes: 16,
    },
    CpuLevel {
        name: "x86-64-v3",
        architecture: Architecture::X86_64,
        processor: "x86-64-v3",
        features: &["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"],
        is_general: true,
        lanes: 8,
    },
    CpuLevel {
        name: "x86-64-v2",
        architecture: Architecture::X86_64,
        processor: "x86-64-v2",
        features: &["sse4.2", "popcnt", "cx16"],
        is_general: true,
        lanes: 4,
    },
    CpuLevel {
        name: "armv8.6-a",
        architecture: Architecture::Aarch64,
        processor: "generic",
        features: &["bf16", "i8mm"],
        is_general: false,
        lanes: 4,
    },
    CpuLevel {
        name: "armv8.2-a",
        architecture: Architecture::Aarch64,
        processor: "generic",
        features: &["lse", "dotprod"],
        is_general: false,
        lanes: 4,
    },
    CpuLevel {
        name: "armv8-a",
        architecture: Architecture::Aarch64,
        processor: "generic",
        features: &["neon"],
        is_general: true,
        lanes: 4,
    },
];

impl CpuLevel {
    /// The level of this name.
    ///
    /// ```
    /// use tile_ir::target::CpuLevel;
    /// assert_eq!(CpuLevel::named("x86-64-v3").map(|level| level.lanes), Some(8));
    /// assert_eq!(CpuLevel::named("armv7-a"), None);
    /// ```
    pub fn named(name: &str) -> Option<&'static CpuLevel> {
        CPU_LEVELS.iter().find(|level| level.name == name)
    }

    /// Everything that it has: its own features, and those of the levels below.
    pub fn all_features(&self) -> impl Iterator<Item = &'static str> {
        let below = self.architecture.levels().skip_while(move |level| level.name != self.name);
        below.flat_map(|level| level.features.iter().copied())
    }
}

impl fmt::Display for CpuLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_what_those_below_have() {
        let all = |name: &str| CpuLevel::named(name).unwrap().all_features().collect::<Vec<_>>();
        let second = ["sse4.2", "popcnt", "cx16"];
        assert_eq!(all("x86-64-v2"), second);
        let third = ["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"];
        assert_eq!(all("x86-64-v3"), [&third[..], &second].concat());
        assert_eq!(all("armv8.6-a"), ["bf16", "i8mm", "lse", "dotprod", "neon"]);
    }

    #[test]
    fn every_kernel_has_code_for_the_least_level() {
        for architecture in Architecture::ALL {
            assert!(architecture.least().is_general, "{architecture:?}");
            assert_eq!(Architecture::named(architecture.name()), Some(architecture));
        }
        assert_eq!(Architecture::X86_64.least().name, "x86-64-v2");
        assert_eq!(Architecture::Aarch64.least().name, "armv8-a");
        assert_eq!(Architecture::named("riscv64"), None);
    }

    /// A machine of a level is measured by its lanes, which are never fewer than those of a worse one.
    #[test]
    fn the_best_comes_first() {
        for architecture in Architecture::ALL {
            let lanes: Vec<u64> = architecture.levels().map(|level| level.lanes).collect();
            assert!(lanes.is_sorted_by(|a, b| a >= b), "{lanes:?}");
        }
        let mut names: Vec<&str> = CPU_LEVELS.iter().map(|level| level.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CPU_LEVELS.len());
    }
}
