//! What the instruction sets of GPUs have, by family.

use super::rounding;
use crate::emit::{Approximations, Features, Float8Conversion, PairRounding};
use tile_ir::TargetDesc;

/// Global memory of an NVIDIA GPU: lanes that read different numbers of its constant memory take turns.
const GLOBAL: u16 = 1;

/// Constant memory of an AMD GPU, which is global memory that nobody writes, and is read by scalar loads where all lanes
/// read one number.
const CONSTANT: u16 = 4;

impl Features {
    /// Those of a family that one of its targets has.
    pub(in crate::gpu) fn of_target(self, target: &TargetDesc) -> Features {
        Features {
            pair_rounding: self.pair_rounding.filter(|_| target.rounds_pairs),
            float8: self.float8.filter(|_| target.float8_conversions.is_some()),
            ..self
        }
    }
}

/// NVIDIA's. `max` and `min` (PTX ISA, "max"): +0 is larger than −0, NaN is ignored, or propagated with `.NaN`. Errors of
/// `2ˣ`: PTX ISA, `ex2.approx`, 2 ulp, and 1 ulp of `expf` in the CUDA C++ Programming Guide, which takes it of such
/// arguments; of `1/x`: PTX ISA, `rcp.approx.ftz`, 1 ulp; of `1/√x`: 2 ulp of `rsqrtf` in that guide, which is
/// `rsqrt.approx`.
pub(crate) const NVPTX: Features = Features {
    half_conversion: true,
    fma: true,
    extrema: true,
    saturating_conversion: true,
    approximations: Some(Approximations {
        exp2: "llvm.nvvm.ex2.approx.ftz",
        reciprocal: "llvm.nvvm.rcp.approx.ftz.f",
        rsqrt: Some("llvm.nvvm.rsqrt.approx.f"),
        saturated_mul_add: Some("llvm.nvvm.fma.rn.sat.f"),
    }),
    pair_rounding: Some(PairRounding { f16: "llvm.nvvm.ff2f16x2.rn", bf16: "llvm.nvvm.ff2bf16x2.rn" }),
    float8: Some(Float8Conversion::Halves),
    upper_product: Some("llvm.nvvm.mulhi.ui"),
    word_permutations: true,
    pair_rotations: true,
    table_space: GLOBAL,
    ..Features::NONE
};

/// AMD's. The errors of `V_EXP_F32` and `V_RCP_F32` are 1 ulp by the ISA manuals; `V_RSQ_F32` takes no subnormal numbers.
/// That a result is kept from 0 to 1 is a modifier of instructions, which LLVM finds.
pub(crate) const AMDGPU: Features = Features {
    half_conversion: true,
    fma: true,
    extrema: true,
    saturating_conversion: true,
    approximations: Some(Approximations {
        exp2: "llvm.amdgcn.exp2",
        reciprocal: "llvm.amdgcn.rcp",
        rsqrt: None,
        saturated_mul_add: None,
    }),
    half_vectors: true,
    pair_rounding: Some(PairRounding { f16: rounding::F16, bf16: rounding::BF16 }),
    float8: Some(Float8Conversion::Words),
    word_permutations: true,
    table_space: CONSTANT,
    ..Features::NONE
};
