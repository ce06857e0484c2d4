//! The matrix instructions of NVIDIA's GPUs.

use super::{
    Fragments, MatrixInstruction, Passing, Trailing, coarse, followed_by, of_manual, of_two, scaling, shape,
    with_feature,
};
use crate::dtype::DType::{self, BF16, F8E4M3FN, F8E5M2, F16, F32, I8, I32, U8};

const fn warp_mma(
    intrinsic: &'static str,
    factor: DType,
    sum: DType,
    k: u32,
    passing: Passing,
) -> MatrixInstruction {
    of_manual(intrinsic, (factor, sum), shape(16, 8, k), Fragments::MmaSync, passing)
}

const fn warpgroup_mma(formats: &'static str, factor: DType, sum: DType, k: u32) -> MatrixInstruction {
    of_manual(formats, (factor, sum), shape(64, 8, k), Fragments::Wgmma, Passing::Words)
}

/// `mma.sync` of compute capability 8.0 on: PTX ISA, "Matrix Multiply-Accumulate Operation Using mma Instruction".
pub(in crate::target) const AMPERE: &[MatrixInstruction] = &[
    warp_mma("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", F16, F32, 16, Passing::Pairs),
    warp_mma("llvm.nvvm.mma.m16n8k8.row.col.f32.f32", F16, F32, 8, Passing::Pairs),
    warp_mma("llvm.nvvm.mma.m16n8k16.row.col.bf16", BF16, F32, 16, Passing::Words),
    warp_mma("llvm.nvvm.mma.m16n8k8.row.col.bf16", BF16, F32, 8, Passing::Words),
    warp_mma("llvm.nvvm.mma.m16n8k8.row.col.tf32", F32, F32, 8, Passing::Tf32Words),
    warp_mma("llvm.nvvm.mma.m16n8k32.row.col.s8", I8, I32, 32, Passing::Words),
    warp_mma("llvm.nvvm.mma.m16n8k16.row.col.s8", I8, I32, 16, Passing::Words),
    warp_mma("llvm.nvvm.mma.m16n8k32.row.col.u8", U8, I32, 32, Passing::Words),
    warp_mma("llvm.nvvm.mma.m16n8k16.row.col.u8", U8, I32, 16, Passing::Words),
];

/// `mma.sync` of 8-bit floats, of compute capability 8.9 on. `ptxas` 13.5 makes two conversions to f16 and two products of
/// these of it, on 9.0 and on 10.0: sums are as precise as those of f16. That of 12.0 has full sums of f32.
const FLOATS_OF_8_BITS: [MatrixInstruction; 4] = [
    warp_mma("llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32", F8E4M3FN, F32, 32, Passing::Words),
    warp_mma("llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32", F8E5M2, F32, 32, Passing::Words),
    of_two(
        warp_mma("llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32", F8E4M3FN, F32, 32, Passing::Words),
        [F8E4M3FN, F8E5M2],
    ),
    of_two(
        warp_mma("llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e4m3.f32", F8E5M2, F32, 32, Passing::Words),
        [F8E5M2, F8E4M3FN],
    ),
];

/// Version 8.4 of PTX, the first with `mma` of 8-bit floats; for 9.0 LLVM takes version 8.0.
const PTX_8_4: &str = "+ptx84";

/// Those of one warp of compute capability 9.0.
pub(in crate::target) const HOPPER_WARPS: &[MatrixInstruction] = &followed_by::<13>(
    AMPERE,
    &[
        with_feature(FLOATS_OF_8_BITS[0], PTX_8_4),
        with_feature(FLOATS_OF_8_BITS[1], PTX_8_4),
        with_feature(FLOATS_OF_8_BITS[2], PTX_8_4),
        with_feature(FLOATS_OF_8_BITS[3], PTX_8_4),
    ],
);

/// Those of one warp of compute capability 8.9. Its products of 8-bit floats have 13 bits of the sums behind the point
/// (SageAttention2, arXiv 2411.10958, section 3.2), so that libraries add them up in f32 (CUTLASS's `OpMultiplyAdd` on Sm89).
pub(in crate::target) const ADA: &[MatrixInstruction] = &followed_by::<13>(
    AMPERE,
    &[coarse(HOPPER_WARPS[9]), coarse(HOPPER_WARPS[10]), coarse(HOPPER_WARPS[11]), coarse(HOPPER_WARPS[12])],
);

/// Those of one warp of compute capability 10.0.
pub(in crate::target) const BLACKWELL: &[MatrixInstruction] = &followed_by::<13>(AMPERE, &FLOATS_OF_8_BITS);

/// `mma.sync` with `.kind::mxf8f6f4.block_scale` of the family of compute capability 12.0: PTX ISA, "Block Scaling for mma.sync".
pub(in crate::target) const BLACKWELL_SCALING: &[MatrixInstruction] = &[
    scaling_mma(
        "llvm.nvvm.mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.e4m3.e4m3.f32.ue8m0",
        [F8E4M3FN; 2],
    ),
    scaling_mma(
        "llvm.nvvm.mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.e5m2.e5m2.f32.ue8m0",
        [F8E5M2; 2],
    ),
    scaling_mma(
        "llvm.nvvm.mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.e4m3.e5m2.f32.ue8m0",
        [F8E4M3FN, F8E5M2],
    ),
    scaling_mma(
        "llvm.nvvm.mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.e5m2.e4m3.f32.ue8m0",
        [F8E5M2, F8E4M3FN],
    ),
];

const fn scaling_mma(intrinsic: &'static str, factors: [DType; 2]) -> MatrixInstruction {
    let product = of_two(warp_mma(intrinsic, factors[0], F32, 32, Passing::Words), factors);
    MatrixInstruction { trailing: Trailing::Scales, ..scaling(product) }
}

/// `wgmma.mma_async` of compute capability 9.0: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
pub(in crate::target) const HOPPER: &[MatrixInstruction] = &[
    warpgroup_mma("f32.f16.f16", F16, F32, 16),
    warpgroup_mma("f32.bf16.bf16", BF16, F32, 16),
    warpgroup_mma("s32.s8.s8", I8, I32, 32),
    warpgroup_mma("s32.u8.u8", U8, I32, 32),
    warpgroup_mma("f32.e4m3.e4m3", F8E4M3FN, F32, 32),
    warpgroup_mma("f32.e5m2.e5m2", F8E5M2, F32, 32),
    of_two(warpgroup_mma("f32.e4m3.e5m2", F8E4M3FN, F32, 32), [F8E4M3FN, F8E5M2]),
    of_two(warpgroup_mma("f32.e5m2.e4m3", F8E5M2, F32, 32), [F8E5M2, F8E4M3FN]),
];

const fn tensor_mma(formats: &'static str, factor: DType, sum: DType, k: u32) -> MatrixInstruction {
    of_manual(formats, (factor, sum), shape(128, 16, k), Fragments::TensorMemory, Passing::Words)
}

/// `tcgen05.mma` of compute capability 10.0, by one block: PTX ISA, "TensorCore 5th Generation Family Instructions".
pub(in crate::target) const TENSOR_MEMORY: &[MatrixInstruction] = &[
    tensor_mma("f32.f16.f16", F16, F32, 16),
    tensor_mma("f32.bf16.bf16", BF16, F32, 16),
    tensor_mma("s32.s8.s8", I8, I32, 32),
    tensor_mma("s32.u8.u8", U8, I32, 32),
    tensor_mma("f32.e4m3.e4m3", F8E4M3FN, F32, 32),
    tensor_mma("f32.e5m2.e5m2", F8E5M2, F32, 32),
    of_two(tensor_mma("f32.e4m3.e5m2", F8E4M3FN, F32, 32), [F8E4M3FN, F8E5M2]),
    of_two(tensor_mma("f32.e5m2.e4m3", F8E5M2, F32, 32), [F8E5M2, F8E4M3FN]),
];
