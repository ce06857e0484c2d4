//! The matrix instructions of AMD's GPUs.

use super::{Fragments, MatrixInstruction, Passing, followed_by, of_manual, of_two, scaling, shape};
use crate::dtype::DType::{self, BF16, F8E4M3FN, F8E5M2, F16, F32, I8, I32, U8};
use tile_layout::linear::{MatrixShape, WmmaGeneration};

const fn matrix_fma(
    intrinsic: &'static str,
    formats: (DType, DType),
    shape: MatrixShape,
    passing: Passing,
) -> MatrixInstruction {
    of_manual(intrinsic, formats, shape, Fragments::Mfma, passing)
}

const fn wave_mma(
    generation: WmmaGeneration,
    intrinsic: &'static str,
    formats: (DType, DType),
    passing: Passing,
) -> MatrixInstruction {
    of_manual(intrinsic, formats, shape(16, 16, 16), Fragments::Wmma(generation), passing)
}

/// `V_MFMA` of gfx90a: CDNA2 ISA, "Matrix Arithmetic Instructions".
pub(in crate::target) const CDNA2: &[MatrixInstruction] = &[
    matrix_fma("llvm.amdgcn.mfma.f32.32x32x8f16", (F16, F32), shape(32, 32, 8), Passing::Vector),
    matrix_fma("llvm.amdgcn.mfma.f32.16x16x16f16", (F16, F32), shape(16, 16, 16), Passing::Vector),
    matrix_fma("llvm.amdgcn.mfma.f32.32x32x8bf16.1k", (BF16, F32), shape(32, 32, 8), Passing::IntegerVector),
    matrix_fma(
        "llvm.amdgcn.mfma.f32.16x16x16bf16.1k",
        (BF16, F32),
        shape(16, 16, 16),
        Passing::IntegerVector,
    ),
    matrix_fma("llvm.amdgcn.mfma.f32.32x32x2f32", (F32, F32), shape(32, 32, 2), Passing::Vector),
    matrix_fma("llvm.amdgcn.mfma.f32.16x16x4f32", (F32, F32), shape(16, 16, 4), Passing::Vector),
    matrix_fma("llvm.amdgcn.mfma.i32.32x32x8i8", (I8, I32), shape(32, 32, 8), Passing::Packed),
    matrix_fma("llvm.amdgcn.mfma.i32.16x16x16i8", (I8, I32), shape(16, 16, 16), Passing::Packed),
];

/// `V_MFMA` of gfx942: CDNA3 ISA, "Matrix Arithmetic Instructions". Those of 8-bit floats are for others than OCP's: with
/// exponents one less, no infinity, and a NaN for −0.
pub(in crate::target) const CDNA3: &[MatrixInstruction] = &[
    CDNA2[0],
    CDNA2[1],
    CDNA2[2],
    CDNA2[3],
    CDNA2[4],
    CDNA2[5],
    matrix_fma("llvm.amdgcn.mfma.i32.32x32x16.i8", (I8, I32), shape(32, 32, 16), Passing::Packed),
    matrix_fma("llvm.amdgcn.mfma.i32.16x16x32.i8", (I8, I32), shape(16, 16, 32), Passing::Packed),
];

/// `V_MFMA_F32_*_F8F6F4` of gfx950: CDNA4 ISA, "Matrix Arithmetic Instructions". Its operands name the formats of factors.
const fn of_any_formats(shape: MatrixShape, factors: [DType; 2]) -> MatrixInstruction {
    let intrinsic = match shape.m {
        32 => "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4",
        _ => "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4",
    };
    of_two(matrix_fma(intrinsic, (factors[0], F32), shape, Passing::WordVector), factors)
}

/// `V_MFMA` of gfx950 for 8-bit floats: of the depth that has twice the rate first.
const CDNA4_FLOATS_OF_8_BITS: &[MatrixInstruction] = &[
    of_any_formats(shape(32, 32, 64), [F8E4M3FN; 2]),
    of_any_formats(shape(32, 32, 64), [F8E5M2; 2]),
    of_any_formats(shape(32, 32, 64), [F8E4M3FN, F8E5M2]),
    of_any_formats(shape(32, 32, 64), [F8E5M2, F8E4M3FN]),
    of_any_formats(shape(16, 16, 128), [F8E4M3FN; 2]),
    of_any_formats(shape(16, 16, 128), [F8E5M2; 2]),
    of_any_formats(shape(16, 16, 128), [F8E4M3FN, F8E5M2]),
    of_any_formats(shape(16, 16, 128), [F8E5M2, F8E4M3FN]),
    short("llvm.amdgcn.mfma.f32.32x32x16.fp8.fp8", shape(32, 32, 16), [F8E4M3FN; 2]),
    short("llvm.amdgcn.mfma.f32.32x32x16.bf8.bf8", shape(32, 32, 16), [F8E5M2; 2]),
    short("llvm.amdgcn.mfma.f32.32x32x16.fp8.bf8", shape(32, 32, 16), [F8E4M3FN, F8E5M2]),
    short("llvm.amdgcn.mfma.f32.32x32x16.bf8.fp8", shape(32, 32, 16), [F8E5M2, F8E4M3FN]),
    short("llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8", shape(16, 16, 32), [F8E4M3FN; 2]),
    short("llvm.amdgcn.mfma.f32.16x16x32.bf8.bf8", shape(16, 16, 32), [F8E5M2; 2]),
    short("llvm.amdgcn.mfma.f32.16x16x32.fp8.bf8", shape(16, 16, 32), [F8E4M3FN, F8E5M2]),
    short("llvm.amdgcn.mfma.f32.16x16x32.bf8.fp8", shape(16, 16, 32), [F8E5M2, F8E4M3FN]),
];

/// `V_MFMA_SCALE` of gfx950: CDNA4 ISA, "Matrix Arithmetic Instructions".
pub(in crate::target) const CDNA4_SCALING: &[MatrixInstruction] = &[
    scaling(CDNA4_FLOATS_OF_8_BITS[0]),
    scaling(CDNA4_FLOATS_OF_8_BITS[1]),
    scaling(CDNA4_FLOATS_OF_8_BITS[2]),
    scaling(CDNA4_FLOATS_OF_8_BITS[3]),
    scaling(CDNA4_FLOATS_OF_8_BITS[4]),
    scaling(CDNA4_FLOATS_OF_8_BITS[5]),
    scaling(CDNA4_FLOATS_OF_8_BITS[6]),
    scaling(CDNA4_FLOATS_OF_8_BITS[7]),
];

/// One of CDNA3's depths, whose name says the formats.
const fn short(intrinsic: &'static str, shape: MatrixShape, factors: [DType; 2]) -> MatrixInstruction {
    of_two(matrix_fma(intrinsic, (factors[0], F32), shape, Passing::Packed), factors)
}

/// `V_MFMA` of gfx950: CDNA4 ISA, "Matrix Arithmetic Instructions".
pub(in crate::target) const CDNA4: &[MatrixInstruction] =
    &followed_by::<30>(CDNA4_OF_OTHERS, CDNA4_FLOATS_OF_8_BITS);

const CDNA4_OF_OTHERS: &[MatrixInstruction] = &[
    matrix_fma("llvm.amdgcn.mfma.f32.32x32x16.f16", (F16, F32), shape(32, 32, 16), Passing::Vector),
    matrix_fma("llvm.amdgcn.mfma.f32.16x16x32.f16", (F16, F32), shape(16, 16, 32), Passing::Vector),
    CDNA2[0],
    CDNA2[1],
    matrix_fma("llvm.amdgcn.mfma.f32.32x32x16.bf16", (BF16, F32), shape(32, 32, 16), Passing::Vector),
    matrix_fma("llvm.amdgcn.mfma.f32.16x16x32.bf16", (BF16, F32), shape(16, 16, 32), Passing::Vector),
    CDNA2[2],
    CDNA2[3],
    CDNA2[4],
    CDNA2[5],
    matrix_fma("llvm.amdgcn.mfma.i32.32x32x32.i8", (I8, I32), shape(32, 32, 32), Passing::WordVector),
    matrix_fma("llvm.amdgcn.mfma.i32.16x16x64.i8", (I8, I32), shape(16, 16, 64), Passing::WordVector),
    CDNA3[6],
    CDNA3[7],
];

/// `V_WMMA` of gfx11: RDNA3 ISA, "Wave Matrix Multiply Accumulate".
pub(in crate::target) const RDNA3: &[MatrixInstruction] = &[
    wave_mma(WmmaGeneration::Gfx11, "llvm.amdgcn.wmma.f32.16x16x16.f16", (F16, F32), Passing::Vector),
    wave_mma(
        WmmaGeneration::Gfx11,
        "llvm.amdgcn.wmma.f32.16x16x16.bf16",
        (BF16, F32),
        Passing::IntegerVector,
    ),
    wave_mma(WmmaGeneration::Gfx11, "llvm.amdgcn.wmma.i32.16x16x16.iu8", (I8, I32), Passing::SignedWords),
    wave_mma(WmmaGeneration::Gfx11, "llvm.amdgcn.wmma.i32.16x16x16.iu8", (U8, I32), Passing::SignedWords),
];

/// `V_WMMA` of gfx12: RDNA4 ISA, "Wave Matrix Multiply Accumulate".
pub(in crate::target) const RDNA4: &[MatrixInstruction] = &[
    wave_mma(WmmaGeneration::Gfx12, "llvm.amdgcn.wmma.f32.16x16x16.f16", (F16, F32), Passing::Vector),
    wave_mma(
        WmmaGeneration::Gfx12,
        "llvm.amdgcn.wmma.f32.16x16x16.bf16",
        (BF16, F32),
        Passing::IntegerVector,
    ),
    wave_mma(WmmaGeneration::Gfx12, "llvm.amdgcn.wmma.i32.16x16x16.iu8", (I8, I32), Passing::SignedWords),
    wave_mma(WmmaGeneration::Gfx12, "llvm.amdgcn.wmma.i32.16x16x16.iu8", (U8, I32), Passing::SignedWords),
    of_floats("llvm.amdgcn.wmma.f32.16x16x16.fp8.fp8", [F8E4M3FN; 2]),
    of_floats("llvm.amdgcn.wmma.f32.16x16x16.bf8.bf8", [F8E5M2; 2]),
    of_floats("llvm.amdgcn.wmma.f32.16x16x16.fp8.bf8", [F8E4M3FN, F8E5M2]),
    of_floats("llvm.amdgcn.wmma.f32.16x16x16.bf8.fp8", [F8E5M2, F8E4M3FN]),
];

/// Of 8-bit floats, OCP's.
const fn of_floats(intrinsic: &'static str, factors: [DType; 2]) -> MatrixInstruction {
    of_two(wave_mma(WmmaGeneration::Gfx12, intrinsic, (factors[0], F32), Passing::WordVector), factors)
}
