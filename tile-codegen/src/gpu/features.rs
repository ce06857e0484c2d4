//! What the instruction sets of GPUs have, by family.

use crate::emit::Features;

/// NVIDIA's. `max` and `min` (PTX ISA, "max"): +0 is larger than −0, NaN is ignored, or propagated with `.NaN`. Errors of
/// `2ˣ`: PTX ISA, `ex2.approx`, 2 ulp, and 1 ulp of `expf` in the CUDA C++ Programming Guide, which takes it of
/// `|x| <= ½`.
pub(crate) const NVPTX: Features = Features { half_conversion: true, fma: true, extrema: true, exp2: true };

/// AMD's. The error of `V_EXP_F32` is 1 ulp by the ISA manuals.
pub(crate) const AMDGPU: Features = Features { half_conversion: true, fma: true, extrema: true, exp2: true };
