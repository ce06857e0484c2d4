//! Decides which lane holds which element in AMD's matrix instructions, as the CDNA3 and RDNA ISA manuals and
//! the AMD matrix instruction calculator define it. Knows nothing of how elements get there. Invariant: every
//! operand covers its tile, exactly once except `A` and `B` of gfx11, which both halves of a wave hold.

use alloc::format;

use super::{Fragment, MatrixShape, Operand, unsupported};
use crate::linear::{Dim, LinearError, LinearLayout};

/// Elements along the depth that share a scale.
const SCALED_BLOCK: u32 = 32;

/// One operand of a `V_MFMA` of one block, for a wave of 64 lanes: `(Register, Lane)` to `(Axis(0), Axis(1))`.
///
/// Supported, with the element's bits:
///
/// | bits | 16 x 16, k | 32 x 32, k | types |
/// |---|---|---|---|
/// | 32 | 4, 8 | 2, 4 | f32; xf32 with the larger k |
/// | 16 | 8, 16, 32 | 4, 8, 16 | bf16 of gfx908; f16 and bf16; the same on gfx950 |
/// | 8 | 16, 32, 64, 128 | 8, 16, 32, 64 | i8 of gfx90a; i8 and fp8 of gfx942; i8 of gfx950; f8f6f4 of gfx950 |
///
/// Lanes are split into `64 / m` groups; a lane holds `k·m / 64` neighbouring elements along `k` of one row of
/// `A` or column of `B`, but no more than 16 bytes: of `f8f6f4` the second half of `k` follows in further registers. The
/// accumulator has four neighbouring rows in a lane's registers.
/// Source: AMD matrix instruction calculator, `--register-layout`; CDNA3 ISA, "Matrix Arithmetic Instructions".
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for any other combination.
///
/// ```
/// use tile_layout::linear::{Dim, MatrixShape, Operand, mfma};
/// let d = mfma(MatrixShape { m: 32, n: 32, k: 8 }, 16, Operand::Accumulator)?;
/// let at = d.apply(&[(Dim::Register, 5), (Dim::Lane, 40)])?;
/// assert_eq!(at, [(Dim::Axis(0), 13), (Dim::Axis(1), 8)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn mfma(shape: MatrixShape, element_bits: u32, operand: Operand) -> Result<LinearLayout, LinearError> {
    let MatrixShape { m, n, k } = shape;
    let supported = m == n
        && match (m, element_bits) {
            (16, 32) => matches!(k, 4 | 8),
            (32, 32) => matches!(k, 2 | 4),
            (16, 16) => matches!(k, 8 | 16 | 32),
            (32, 16) => matches!(k, 4 | 8 | 16),
            (16, 8) => matches!(k, 16 | 32 | 64 | 128),
            (32, 8) => matches!(k, 8 | 16 | 32 | 64),
            _ => false,
        };
    if !supported {
        return unsupported(
            "mfma",
            format!(
                "no {shape} on {element_bits}-bit elements; use one of the listed 16 x 16 and 32 x 32 shapes"
            ),
        );
    }
    let row_bits = m.ilog2();
    let group_bits = 6 - row_bits;
    let factor = || {
        let held = k >> group_bits;
        let together = held.min(128 / element_bits);
        Fragment::new(m, k)
            .columns(Dim::Register, 1, together.ilog2())
            .columns(Dim::Register, together << group_bits, (held / together).ilog2())
            .rows(Dim::Lane, 1, row_bits)
            .columns(Dim::Lane, together, group_bits)
    };
    match operand {
        Operand::A => factor().build(),
        Operand::B => factor().transposed().build(),
        Operand::Accumulator => Fragment::new(m, m)
            .rows(Dim::Register, 1, 2)
            .rows(Dim::Register, 4 << group_bits, row_bits - 2 - group_bits)
            .columns(Dim::Lane, 1, row_bits)
            .rows(Dim::Lane, 4, group_bits)
            .build(),
    }
}

/// The scales of a factor of a `V_MFMA_SCALE_*_F8F6F4`, each of a block of 32 along the depth of [`mfma`]: `(Lane)` to row and
/// block of `A`, or to block and column of `B`.
///
/// Lane `l` gives that of row or column `l % m` and block `l / m`, whichever lanes hold the elements of the block.
/// Source: CDNA4 ISA, section 7.2.1; measured on a gfx950 by Composable Kernel, `test/mx_mfma_op/scale_mapping_*.txt`.
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for other shapes than 16 x 16 x 128 and 32 x 32 x 64, and for the accumulator.
///
/// ```
/// use tile_layout::linear::{Dim, MatrixShape, Operand, mfma_scale};
/// let a = mfma_scale(MatrixShape { m: 16, n: 16, k: 128 }, Operand::A)?;
/// assert_eq!(a.apply(&[(Dim::Lane, 37)])?, [(Dim::Axis(0), 5), (Dim::Axis(1), 2)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn mfma_scale(shape: MatrixShape, operand: Operand) -> Result<LinearLayout, LinearError> {
    let MatrixShape { m, n, k } = shape;
    if m != n || !matches!((m, k), (16, 128) | (32, 64)) {
        return unsupported("mfma_scale", format!("no {shape}; use 16 x 16 x 128 or 32 x 32 x 64"));
    }
    let row_bits = m.ilog2();
    let scales = Fragment::new(m, k / SCALED_BLOCK)
        .columns(Dim::Register, 1, 0)
        .rows(Dim::Lane, 1, row_bits)
        .columns(Dim::Lane, 1, 6 - row_bits);
    match operand {
        Operand::A => scales.build(),
        Operand::B => scales.transposed().build(),
        Operand::Accumulator => unsupported("mfma_scale", "the accumulator has no scales".into()),
    }
}

/// The operand of a `V_MFMA` as in [`mfma`] with its depth in another order: that in which a lane's registers and the
/// groups of lanes count along the rows of an accumulator. A product is the same whatever order its depth has, as long as
/// both factors have it in the same one; so sums are a factor where they lie, which in the manual's order they aren't
/// where a lane holds more than four elements. Position `p` along the depth then stands for the manual's
/// `p / (4·g) · 4 + p % 4 + p / 4 % g · held`, of `g = 64 / m` groups of lanes that hold `held` elements each.
///
/// # Errors
/// As [`mfma`], and where a lane holds fewer than four elements.
///
/// ```
/// use tile_layout::linear::{Dim, MatrixShape, Operand, mfma_by_sums};
/// let a = mfma_by_sums(MatrixShape { m: 32, n: 32, k: 16 }, 16, Operand::A)?;
/// let at = a.apply(&[(Dim::Register, 5), (Dim::Lane, 40)])?;
/// assert_eq!(at, [(Dim::Axis(0), 8), (Dim::Axis(1), 13)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn mfma_by_sums(
    shape: MatrixShape,
    element_bits: u32,
    operand: Operand,
) -> Result<LinearLayout, LinearError> {
    let plain = mfma(shape, element_bits, operand)?;
    let row_bits = shape.m.ilog2();
    let group_bits = 6 - row_bits;
    let held = shape.k >> group_bits;
    if held < 4 {
        return unsupported(
            "mfma_by_sums",
            format!("a lane of {shape} holds {held} elements; it takes four"),
        );
    }
    let factor = Fragment::new(shape.m, shape.k)
        .columns(Dim::Register, 1, 2)
        .columns(Dim::Register, 4 << group_bits, held.ilog2() - 2)
        .rows(Dim::Lane, 1, row_bits)
        .columns(Dim::Lane, 4, group_bits);
    match operand {
        Operand::A => factor.build(),
        Operand::B => factor.transposed().build(),
        Operand::Accumulator => Ok(plain),
    }
}

/// A generation of `V_WMMA`; their fragments differ.
///
/// ```
/// use tile_layout::linear::{Dim, Operand, WmmaGeneration, wmma};
/// let registers = |generation| wmma(generation, 16, Operand::A).map(|a| a.input_bits(Dim::Register));
/// assert_eq!((registers(WmmaGeneration::Gfx11), registers(WmmaGeneration::Gfx12)), (Ok(4), Ok(3)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WmmaGeneration {
    /// RDNA 3: both halves of a wave hold all of `A` and `B`.
    Gfx11,
    /// RDNA 4: each half holds its half of `k`.
    Gfx12,
}

/// One operand of `V_WMMA` 16 x 16 x 16, for a wave of 32 lanes: `(Register, Lane)` to `(Axis(0), Axis(1))`.
///
/// Elements of `A` and `B` have 16 bits (f16, bf16) or 8 bits (iu8, and fp8 on gfx12); their width doesn't
/// change who holds what. On gfx11 lane bit 4 is a broadcast bit of `A` and `B`, and the accumulator
/// interleaves rows: register `r` holds row `2·r + lane / 16`. On gfx12 a lane holds eight neighbouring elements
/// along `k`, and eight neighbouring rows of the accumulator.
/// Source: RDNA3 ISA, "Wave Matrix Multiply Accumulate"; RDNA4 ISA, the same section.
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for other element widths.
///
/// ```
/// use tile_layout::linear::{Dim, Operand, WmmaGeneration, wmma};
/// let a = wmma(WmmaGeneration::Gfx11, 16, Operand::A)?;
/// assert_eq!(a.free_mask(Dim::Lane), 16);
/// let a = wmma(WmmaGeneration::Gfx12, 16, Operand::A)?;
/// assert!(a.is_permutation());
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn wmma(
    generation: WmmaGeneration,
    element_bits: u32,
    operand: Operand,
) -> Result<LinearLayout, LinearError> {
    if !matches!(element_bits, 8 | 16) {
        return unsupported("wmma", format!("no factors of {element_bits}-bit elements; use 8 or 16 bits"));
    }
    let factor = || match generation {
        WmmaGeneration::Gfx11 => {
            Fragment::new(16, 16).columns(Dim::Register, 1, 4).rows(Dim::Lane, 1, 4).copies(Dim::Lane, 1)
        }
        WmmaGeneration::Gfx12 => {
            Fragment::new(16, 16).columns(Dim::Register, 1, 3).rows(Dim::Lane, 1, 4).columns(Dim::Lane, 8, 1)
        }
    };
    let (first_row, half_row) = match generation {
        WmmaGeneration::Gfx11 => (2, 1),
        WmmaGeneration::Gfx12 => (1, 8),
    };
    match operand {
        Operand::A => factor().build(),
        Operand::B => factor().transposed().build(),
        Operand::Accumulator => Fragment::new(16, 16)
            .rows(Dim::Register, first_row, 3)
            .columns(Dim::Lane, 1, 4)
            .rows(Dim::Lane, half_row, 1)
            .build(),
    }
}
