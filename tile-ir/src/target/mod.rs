//! Targets as data. No pass and no emitter asks for a target by name: it reads these fields.

mod banks;
mod few_rows;
mod matrix;
mod processor;
mod rates;
mod runs_on;
mod tiles;

pub use banks::SharedBanks;
pub use matrix::{Fragments, MatrixInstruction, Passing, Scales, Trailing, wgmma_has_columns};
pub use processor::{Architecture, CPU_LEVELS, CpuLevel};
pub use rates::{Factor, Rates};
pub use runs_on::{Reach, RunsOn};
pub use tiles::{TILE_FEATURES, grants_tiles};

use crate::dtype::DType;
use std::fmt;

/// The machine family that code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The host processor.
    Cpu,
    /// NVIDIA GPUs, through PTX.
    Nvptx,
    /// AMD GPUs, through HSACO.
    Amdgpu,
}

/// A target: what its code generator and its scheduler need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetDesc {
    /// The name that users write: `sm_90a`, `gfx942`, `cpu`.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// Which devices run its code.
    pub runs_on: RunsOn,
    /// Threads that execute in lock-step: warp or wavefront. 1 on a CPU.
    pub warp: u32,
    /// Largest shared memory (LDS) of a block, in bytes; 0 on a CPU.
    pub shared_bytes: u32,
    /// How shared memory serves the lanes of a warp.
    pub shared_banks: SharedBanks,
    /// Largest number of threads of a block; 1 on a CPU.
    pub max_threads: u32,
    /// Whether one instruction asks for a range of memory to be brought into the L2 cache.
    pub bulk_prefetch: bool,
    /// Whether a warp loads matrices of 8 rows of 16 bytes from shared memory into the fragments of its matrix
    /// instructions, whichever way they lie.
    pub matrix_loads: bool,
    /// Whether a warp stores what such loads would give it.
    pub matrix_stores: bool,
    /// Whether a thread copies 4, 8 or 16 bytes to shared memory while it goes on.
    pub asynchronous_copies: bool,
    /// Whether blocks can run together as a cluster and reach each other's shared memory (PTX ISA, "Cooperative Thread
    /// Arrays").
    pub clusters: bool,
    /// The feature by which LLVM's PTX has stores to another block that an mbarrier counts (PTX ISA, "st.async"), where that
    /// isn't one of the target's.
    pub sends: &'static str,
    /// Whether an instruction that moves several elements of global memory asks no more of their address than one that
    /// moves one.
    pub unaligned_accesses: bool,
    /// Bytes that one instruction stores to global memory at most, each element by an atomic store of its own.
    pub atomic_store_bytes: u64,
    /// Instructions that add several neighbours to global memory, each by an atomic addition of its own.
    pub vector_adds: &'static [VectorAdd],
    /// A block that moves fewer bytes of global memory takes longer to begin than to move them, so that blocks should go on
    /// to further tiles; 0 where a launch doesn't ask how many run at once.
    pub least_block_bytes: u64,
    /// Parts with an L2 cache each, to which successive blocks of a launch go in turn; a power of two.
    pub parts: u32,
    /// Whether one instruction rounds two f32 to f16 or to bf16.
    pub rounds_pairs: bool,
    /// Whether instructions convert 8-bit floats of the OCP formats: the feature by which LLVM's PTX has them, or nothing
    /// where they are the target's own.
    pub float8_conversions: Option<&'static str>,
    /// Whether matrix instructions take subnormal numbers of f16 as zeros.
    pub flushes_halves: bool,
    /// Its matrix instructions; of those that fit, the first is taken.
    pub matrix: &'static [MatrixInstruction],
    /// Those of a warp that also scale blocks of their factors.
    pub scaling_matrix: &'static [MatrixInstruction],
    /// Those of four warps together, or whose sums four warps load together, whose factors lie in shared memory, where tiles are
    /// copied by tensor maps.
    pub warpgroup_matrix: &'static [MatrixInstruction],
}

/// An instruction that adds neighbours to global memory, each by an atomic addition of its own, and gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorAdd {
    /// The format of the elements.
    pub dtype: DType,
    /// How many it adds at most; also by any lower power of two.
    pub most: u64,
    /// The feature by which LLVM's PTX has it, where that isn't one of the target's.
    pub feature: &'static str,
}

impl VectorAdd {
    const fn of(dtype: DType, most: u64) -> VectorAdd {
        VectorAdd { dtype, most, feature: "" }
    }

    const fn since(feature: &'static str, dtype: DType, most: u64) -> VectorAdd {
        VectorAdd { dtype, most, feature }
    }
}

/// The feature by which LLVM has PTX 8.1.
const PTX_8_1: &str = "+ptx81";

/// PTX ISA, "red": pairs of f16 from sm_60 on.
const AMPERE_ADDS: &[VectorAdd] = &[VectorAdd::of(DType::F16, 2)];

/// PTX ISA, "red": vectors from sm_90 and PTX 8.1 on.
const HOPPER_ADDS: &[VectorAdd] = &[
    VectorAdd::since(PTX_8_1, DType::F32, 4),
    VectorAdd::since(PTX_8_1, DType::F16, 8),
    VectorAdd::since(PTX_8_1, DType::BF16, 8),
];

const BLACKWELL_ADDS: &[VectorAdd] =
    &[VectorAdd::of(DType::F32, 4), VectorAdd::of(DType::F16, 8), VectorAdd::of(DType::BF16, 8)];

/// `global_atomic_pk_add_f16` and `global_atomic_pk_add_bf16` (CDNA 3 and RDNA 4 ISA manuals), which LLVM selects for
/// memory of any kind. CDNA 2's lose additions to memory that the host shares, and RDNA 3 has none.
const PAIR_ADDS: &[VectorAdd] = &[VectorAdd::of(DType::F16, 2), VectorAdd::of(DType::BF16, 2)];

/// LLVM has atomic stores of 8 bytes for AMD's GPUs, none of 16. A plain store isn't one: on CDNA 3 it stays in the L2
/// cache of its part, where other parts don't see it.
const AMD_STORE_BYTES: u64 = 8;

const KIB: u32 = 1024;

/// [`TargetDesc::least_block_bytes`] of an H200, whose multiprocessors have 18.5 bytes a clock each of 4.3 TB/s. A read takes
/// some 1200 clocks while memory is that busy, and what comes before the first read of a block but not of a further turn,
/// some 300: the launch, and reading parameters. To fill memory, 16 blocks of 128 threads must move 1.4 KiB each in the
/// first of these times, or 1.7 KiB in both. What moves more hides the beginning of blocks by itself.
const LEAST_BLOCK_BYTES: u64 = 2 * 1024;

/// The same of an A100, whose multiprocessors have 9.2 bytes a clock each of 1.4 TB/s.
const LEAST_BLOCK_BYTES_OF_AMPERE: u64 = 1024;

/// Compute capability 8.0, and what NVIDIA's later GPUs have of it that are described by the difference.
const AMPERE: TargetDesc = TargetDesc {
    name: "sm_80",
    family: Family::Nvptx,
    runs_on: RunsOn::since(8, 0),
    warp: 32,
    shared_bytes: 163 * KIB,
    shared_banks: SharedBanks::IN_ORDER,
    max_threads: 1024,
    bulk_prefetch: false,
    matrix_loads: true,
    matrix_stores: false,
    asynchronous_copies: true,
    clusters: false,
    sends: "",
    unaligned_accesses: false,
    atomic_store_bytes: 16,
    vector_adds: AMPERE_ADDS,
    least_block_bytes: LEAST_BLOCK_BYTES_OF_AMPERE,
    parts: 1,
    rounds_pairs: true,
    float8_conversions: None,
    flushes_halves: false,
    matrix: matrix::nvidia::AMPERE,
    scaling_matrix: &[],
    warpgroup_matrix: &[],
};

/// Every target. Shared memory: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"
/// (163 KiB on 8.0, 99 KiB on 8.6, 8.9 and 12.0, 227 KiB on 9.0 and 10.0); the LDS of AMD's CDNA2, CDNA3, RDNA3 and
/// RDNA4 ISA manuals (64 KiB for a work-group) and of CDNA4's (160 KiB). Parts: AMD's CDNA 3 and CDNA 4 architecture white
/// papers (eight accelerator complex dies with 4 MB of L2 each, to which the scheduler gives work-groups round-robin).
/// Unaligned accesses: LLVM's AMDGPU usage guide, "unaligned-access-mode", which the HSA system architecture demands.
pub const TARGETS: &[TargetDesc] = &[
    TargetDesc {
        name: "cpu",
        family: Family::Cpu,
        runs_on: RunsOn::Host,
        warp: 1,
        shared_bytes: 0,
        shared_banks: SharedBanks::IN_ORDER,
        max_threads: 1,
        bulk_prefetch: false,
        matrix_loads: false,
        matrix_stores: false,
        asynchronous_copies: false,
        clusters: false,
        sends: "",
        unaligned_accesses: false,
        atomic_store_bytes: 0,
        vector_adds: &[],
        least_block_bytes: 0,
        parts: 1,
        rounds_pairs: false,
        float8_conversions: None,
        flushes_halves: false,
        matrix: &[],
        scaling_matrix: &[],
        warpgroup_matrix: &[],
    },
    AMPERE,
    TargetDesc { name: "sm_86", runs_on: RunsOn::since(8, 6), shared_bytes: 99 * KIB, ..AMPERE },
    TargetDesc {
        name: "sm_89",
        runs_on: RunsOn::since(8, 9),
        shared_bytes: 99 * KIB,
        float8_conversions: Some(PTX_8_1),
        matrix: matrix::nvidia::ADA,
        ..AMPERE
    },
    TargetDesc {
        name: "sm_90a",
        family: Family::Nvptx,
        runs_on: RunsOn::Capability { major: 9, minor: 0, reach: Reach::Alone },
        warp: 32,
        shared_bytes: 227 * KIB,
        shared_banks: SharedBanks::IN_ORDER,
        max_threads: 1024,
        bulk_prefetch: true,
        matrix_loads: true,
        matrix_stores: true,
        asynchronous_copies: true,
        clusters: true,
        sends: PTX_8_1,
        unaligned_accesses: false,
        atomic_store_bytes: 16,
        vector_adds: HOPPER_ADDS,
        least_block_bytes: LEAST_BLOCK_BYTES,
        parts: 1,
        rounds_pairs: true,
        float8_conversions: Some(PTX_8_1),
        flushes_halves: false,
        matrix: matrix::nvidia::HOPPER_WARPS,
        scaling_matrix: &[],
        warpgroup_matrix: matrix::nvidia::HOPPER,
    },
    TargetDesc {
        name: "sm_100a",
        family: Family::Nvptx,
        runs_on: RunsOn::Capability { major: 10, minor: 0, reach: Reach::Alone },
        warp: 32,
        shared_bytes: 227 * KIB,
        shared_banks: SharedBanks::IN_ORDER,
        max_threads: 1024,
        bulk_prefetch: true,
        matrix_loads: true,
        matrix_stores: true,
        asynchronous_copies: true,
        clusters: true,
        sends: "",
        unaligned_accesses: false,
        atomic_store_bytes: 16,
        vector_adds: BLACKWELL_ADDS,
        least_block_bytes: LEAST_BLOCK_BYTES,
        parts: 1,
        rounds_pairs: true,
        float8_conversions: Some(""),
        flushes_halves: false,
        matrix: matrix::nvidia::BLACKWELL,
        scaling_matrix: &[],
        warpgroup_matrix: matrix::nvidia::TENSOR_MEMORY,
    },
    TargetDesc {
        name: "sm_120f",
        runs_on: RunsOn::Capability { major: 12, minor: 0, reach: Reach::Family },
        shared_bytes: 99 * KIB,
        bulk_prefetch: true,
        matrix_stores: true,
        vector_adds: BLACKWELL_ADDS,
        float8_conversions: Some(""),
        matrix: matrix::nvidia::BLACKWELL,
        scaling_matrix: matrix::nvidia::BLACKWELL_SCALING,
        ..AMPERE
    },
    TargetDesc {
        name: "gfx90a",
        family: Family::Amdgpu,
        runs_on: RunsOn::Processor,
        warp: 64,
        shared_bytes: 64 * KIB,
        shared_banks: SharedBanks::CDNA3,
        max_threads: 1024,
        bulk_prefetch: false,
        matrix_loads: false,
        matrix_stores: false,
        asynchronous_copies: false,
        clusters: false,
        sends: "",
        unaligned_accesses: true,
        atomic_store_bytes: AMD_STORE_BYTES,
        vector_adds: &[],
        least_block_bytes: 0,
        parts: 1,
        rounds_pairs: false,
        float8_conversions: None,
        flushes_halves: true,
        matrix: matrix::amd::CDNA2,
        scaling_matrix: &[],
        warpgroup_matrix: &[],
    },
    TargetDesc {
        name: "gfx942",
        family: Family::Amdgpu,
        runs_on: RunsOn::Processor,
        warp: 64,
        shared_bytes: 64 * KIB,
        shared_banks: SharedBanks::CDNA3,
        max_threads: 1024,
        bulk_prefetch: false,
        matrix_loads: false,
        matrix_stores: false,
        asynchronous_copies: false,
        clusters: false,
        sends: "",
        unaligned_accesses: true,
        atomic_store_bytes: AMD_STORE_BYTES,
        vector_adds: PAIR_ADDS,
        least_block_bytes: 0,
        parts: 8,
        rounds_pairs: false,
        float8_conversions: None,
        flushes_halves: false,
        matrix: matrix::amd::CDNA3,
        scaling_matrix: &[],
        warpgroup_matrix: &[],
    },
    TargetDesc {
        name: "gfx950",
        family: Family::Amdgpu,
        runs_on: RunsOn::Processor,
        warp: 64,
        shared_bytes: 160 * KIB,
        shared_banks: SharedBanks::CDNA4,
        max_threads: 1024,
        bulk_prefetch: false,
        matrix_loads: false,
        matrix_stores: false,
        asynchronous_copies: false,
        clusters: false,
        sends: "",
        unaligned_accesses: true,
        atomic_store_bytes: AMD_STORE_BYTES,
        vector_adds: PAIR_ADDS,
        least_block_bytes: 0,
        parts: 8,
        rounds_pairs: true,
        float8_conversions: Some(""),
        flushes_halves: false,
        matrix: matrix::amd::CDNA4,
        scaling_matrix: matrix::amd::CDNA4_SCALING,
        warpgroup_matrix: &[],
    },
    TargetDesc {
        name: "gfx1100",
        family: Family::Amdgpu,
        runs_on: RunsOn::Processor,
        warp: 32,
        shared_bytes: 64 * KIB,
        shared_banks: SharedBanks::RDNA3,
        max_threads: 1024,
        bulk_prefetch: false,
        matrix_loads: false,
        matrix_stores: false,
        asynchronous_copies: false,
        clusters: false,
        sends: "",
        unaligned_accesses: true,
        atomic_store_bytes: AMD_STORE_BYTES,
        vector_adds: &[],
        least_block_bytes: 0,
        parts: 1,
        rounds_pairs: false,
        float8_conversions: None,
        flushes_halves: false,
        matrix: matrix::amd::RDNA3,
        scaling_matrix: &[],
        warpgroup_matrix: &[],
    },
    TargetDesc {
        name: "gfx1201",
        family: Family::Amdgpu,
        runs_on: RunsOn::Processor,
        warp: 32,
        shared_bytes: 64 * KIB,
        shared_banks: SharedBanks::IN_ORDER,
        max_threads: 1024,
        bulk_prefetch: false,
        matrix_loads: false,
        matrix_stores: false,
        asynchronous_copies: false,
        clusters: false,
        sends: "",
        unaligned_accesses: true,
        atomic_store_bytes: AMD_STORE_BYTES,
        vector_adds: PAIR_ADDS,
        least_block_bytes: 0,
        parts: 1,
        rounds_pairs: false,
        float8_conversions: Some(""),
        flushes_halves: false,
        matrix: matrix::amd::RDNA4,
        scaling_matrix: &[],
        warpgroup_matrix: &[],
    },
];

/// A target name that isn't known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{name}`; the targets are {}", target_names())]
pub struct UnknownTarget {
    /// The name that was asked for.
    pub name: String,
}

fn target_names() -> String {
    TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}

impl TargetDesc {
    /// Whether the sums of its products whose tiles are copied lie in tensor memory ([`Fragments::TensorMemory`]).
    pub(crate) fn has_tensor_memory(&self) -> bool {
        self.warpgroup_matrix.iter().any(|it| it.fragments == Fragments::TensorMemory)
    }

    /// The target with this name.
    ///
    /// # Errors
    /// [`UnknownTarget`], whose message lists the names.
    pub fn named(name: &str) -> Result<&'static TargetDesc, UnknownTarget> {
        TARGETS
            .iter()
            .find(|target| target.name == name)
            .ok_or_else(|| UnknownTarget { name: name.to_owned() })
    }

    /// The host processor.
    pub fn cpu() -> &'static TargetDesc {
        &TARGETS[0]
    }
}

impl fmt::Display for TargetDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_target_lists_the_known_ones() {
        let error = TargetDesc::named("sm_70").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown target `sm_70`; the targets are cpu, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120f, gfx90a, gfx942, \
             gfx950, gfx1100, gfx1201"
        );
        assert_eq!(TargetDesc::cpu().family, Family::Cpu);
    }
}
