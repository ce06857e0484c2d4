//! Decides which lane holds which element in NVIDIA's matrix instructions, as the PTX ISA defines it in the
//! sections "Matrix Fragments for mma.m16n8k…" and "Register Fragments" of `wgmma.mma_async`. Knows nothing of
//! how elements get there. Invariant: all supported operands cover their tile exactly once.
//!
//! One pattern makes all of them. With `E` elements in 32 bits, four neighbouring lanes hold `4·E` neighbouring
//! elements of a row, eight such groups hold eight rows; further registers repeat this 8 rows down and then
//! `4·E` columns to the right.

use alloc::format;

use super::{Fragment, MatrixShape, Operand, unsupported};
use crate::linear::{Dim, LinearError, LinearLayout};

/// Bits of a register that hold packed elements.
const REGISTER_BITS: u32 = 32;

/// One operand of `mma.sync`, for a warp of 32 lanes: `(Register, Lane)` to `(Axis(0), Axis(1))`.
///
/// Supported are m16n8 with a depth of 128 or 256 bits: k4 and k8 for 32-bit elements (tf32), k8 and k16 for 16
/// bits, k16 and k32 for 8 bits, k32 and k64 for 4 bits. The accumulator is the same for all of them.
/// Source: PTX ISA, "Matrix Fragments for mma.m16n8k4", "…k8", "…k16", "…k32", "…k64".
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for any other shape.
///
/// ```
/// use tile_layout::linear::{Dim, MatrixShape, Operand, mma_sync};
/// let d = mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::Accumulator)?;
/// assert_eq!(d.to_string(), "\
/// (register 4, lane 32) -> (axis0 16, axis1 8)
///   register=1 -> (0, 1)
///   register=2 -> (8, 0)
///   lane=1 -> (0, 2)
///   lane=2 -> (0, 4)
///   lane=4 -> (1, 0)
///   lane=8 -> (2, 0)
///   lane=16 -> (4, 0)");
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn mma_sync(
    shape: MatrixShape,
    element_bits: u32,
    operand: Operand,
) -> Result<LinearLayout, LinearError> {
    let MatrixShape { m, n, k } = shape;
    let depth = u64::from(k) * u64::from(element_bits);
    if (m, n) != (16, 8) || !matches!(element_bits, 4 | 8 | 16 | 32) || !matches!(depth, 128 | 256) {
        return unsupported(
            "mma.sync",
            format!("no {shape} on {element_bits}-bit elements; use m16n8 with a depth of 128 or 256 bits"),
        );
    }
    match operand {
        Operand::A => row_operand(16, k, element_bits).build(),
        Operand::B => row_operand(8, k, element_bits).transposed().build(),
        Operand::Accumulator => accumulator(8).build(),
    }
}

/// The scales of a factor of `mma.sync` with `.block_scale.scale_vec::1X`, one for the whole depth of a row of `A` or a column
/// of `B`, where the first lanes of a quad give them (`thread-id` 0): `(Lane)` to row of `A`, or to column of `B`.
///
/// Of a quad of lanes the first two give the scales of the two rows of `A` that they hold, and the first that of their column
/// of `B`; the others hold copies, which nobody reads.
/// Source: PTX ISA, "Block Scaling for mma.sync"; measured on `sm_120` by others, as CUTLASS has it in `mma_traits_sm120.hpp`.
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for another shape than m16n8k32, and for the accumulator.
///
/// ```
/// use tile_layout::linear::{Dim, MatrixShape, Operand, mma_sync_scale};
/// let a = mma_sync_scale(MatrixShape { m: 16, n: 8, k: 32 }, Operand::A)?;
/// assert_eq!(a.apply(&[(Dim::Lane, 13)])?, [(Dim::Axis(0), 11), (Dim::Axis(1), 0)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn mma_sync_scale(shape: MatrixShape, operand: Operand) -> Result<LinearLayout, LinearError> {
    if shape != (MatrixShape { m: 16, n: 8, k: 32 }) {
        return unsupported("mma.sync.block_scale", format!("no {shape}; use m16n8k32"));
    }
    match operand {
        Operand::A => Fragment::new(16, 1)
            .rows(Dim::Register, 1, 0)
            .rows(Dim::Lane, 8, 1)
            .copies(Dim::Lane, 1)
            .rows(Dim::Lane, 1, 3)
            .build(),
        Operand::B => Fragment::new(1, 8)
            .columns(Dim::Register, 1, 0)
            .copies(Dim::Lane, 2)
            .columns(Dim::Lane, 1, 3)
            .build(),
        Operand::Accumulator => unsupported("mma.sync.block_scale", "the accumulator has no scales".into()),
    }
}

/// Operand `A` of `wgmma.mma_async` in registers, for the 128 lanes of a warpgroup: `(Register, Lane, Warp)` to
/// 64 rows and 256 bits of columns (k8 for 32-bit, k16 for 16-bit, k32 for 8-bit elements).
///
/// Every warp holds 16 rows as [`mma_sync`] does.
/// Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk8", "…k16", "…k32".
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for other element widths.
///
/// ```
/// use tile_layout::linear::{Dim, wgmma_register_operand};
/// let a = wgmma_register_operand(16)?;
/// let at = a.apply(&[(Dim::Register, 4), (Dim::Lane, 4), (Dim::Warp, 3)])?;
/// assert_eq!(at, [(Dim::Axis(0), 49), (Dim::Axis(1), 8)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn wgmma_register_operand(element_bits: u32) -> Result<LinearLayout, LinearError> {
    if !matches!(element_bits, 8 | 16 | 32) {
        return unsupported("wgmma", format!("no A of {element_bits}-bit elements; use 8, 16 or 32 bits"));
    }
    let mut fragment = row_operand(16, 256 / element_bits, element_bits);
    fragment.extents[0].1 = 64;
    fragment.rows(Dim::Warp, 16, 2).build()
}

/// The accumulator of `wgmma.mma_async` m64nN, for the 128 lanes of a warpgroup: `(Register, Lane, Warp)` to 64
/// rows and `n` columns.
///
/// `n` is a power of two from 8 to 256. Other legal widths (multiples of 8) are no linear layout of one piece:
/// see [`wgmma_slabs`].
/// Source: PTX ISA, "Register Fragments for wgmma.mma_async", accumulator D.
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for any other `n`.
///
/// ```
/// use tile_layout::linear::{Dim, wgmma_accumulator};
/// let d = wgmma_accumulator(256)?;
/// let at = d.apply(&[(Dim::Register, 127), (Dim::Lane, 31), (Dim::Warp, 1)])?;
/// assert_eq!(at, [(Dim::Axis(0), 31), (Dim::Axis(1), 255)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn wgmma_accumulator(n: u32) -> Result<LinearLayout, LinearError> {
    if !n.is_power_of_two() || !(8..=256).contains(&n) {
        return unsupported(
            "wgmma",
            format!("no linear accumulator of {n} columns; use a power of two from 8 to 256, or the slabs"),
        );
    }
    let mut fragment = accumulator(n);
    fragment.extents[0].1 = 64;
    fragment.rows(Dim::Warp, 16, 2).build()
}

/// An accumulator as equal slabs side by side.
///
/// ```
/// use tile_layout::linear::{Dim, wgmma_slabs};
/// let slabs = wgmma_slabs(24)?;
/// assert_eq!((slabs.count, slabs.slab.input_bits(Dim::Register)), (3, 2));
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WgmmaSlabs {
    /// One slab: 64 rows, 8 columns, 4 registers a lane.
    pub slab: LinearLayout,
    /// How many there are. Register `r` of a lane is register `r % 4` of slab `r / 4`, which starts at column
    /// `8·(r / 4)`.
    pub count: u32,
}

/// The accumulator of `wgmma.mma_async` m64nN for every legal `n`, as slabs of 8 columns.
///
/// For floating-point types every multiple of 8 up to 256 is legal; for 8-bit integers 8, 24 and the multiples
/// of 16. This function knows no types and accepts the former.
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] where `n` isn't a multiple of 8 from 8 to 256.
///
/// ```
/// let slabs = tile_layout::linear::wgmma_slabs(96)?;
/// assert_eq!(slabs.count, 12);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn wgmma_slabs(n: u32) -> Result<WgmmaSlabs, LinearError> {
    if !n.is_multiple_of(8) || !(8..=256).contains(&n) {
        return unsupported("wgmma", format!("no accumulator of {n} columns; use a multiple of 8 up to 256"));
    }
    Ok(WgmmaSlabs { slab: wgmma_accumulator(8)?, count: n / 8 })
}

/// The accumulator of `tcgen05.mma` with 128 rows, as the 128 lanes of a warpgroup load it from tensor memory by
/// `tcgen05.ld.16x256b`, first the upper half of each warp's 32 rows and then the lower one: `(Register, Lane, Warp)` to 128
/// rows and `n` columns.
///
/// `n` is a power of two from 8 to 256.
/// Source: PTX ISA, "Matrix fragments for shape .16x256b", and "Layout D (M = 128)" of `tcgen05` for the rows that a warp may
/// load.
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for any other `n`.
///
/// ```
/// use tile_layout::linear::{Dim, tensor_memory_accumulator};
/// let d = tensor_memory_accumulator(64)?;
/// let at = d.apply(&[(Dim::Register, 63), (Dim::Lane, 31), (Dim::Warp, 1)])?;
/// assert_eq!(at, [(Dim::Axis(0), 63), (Dim::Axis(1), 63)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn tensor_memory_accumulator(n: u32) -> Result<LinearLayout, LinearError> {
    if !n.is_power_of_two() || !(8..=256).contains(&n) {
        return unsupported(
            "tcgen05",
            format!("no linear accumulator of {n} columns; use a power of two from 8 to 256"),
        );
    }
    let mut fragment = accumulator(n);
    fragment.extents[0].1 = 128;
    fragment.rows(Dim::Register, 16, 1).rows(Dim::Warp, 32, 2).build()
}

/// A factor with `k` along the row: 8 or 16 rows.
fn row_operand(rows: u32, k: u32, element_bits: u32) -> Fragment {
    let packed = REGISTER_BITS / element_bits;
    Fragment::new(rows, k)
        .columns(Dim::Register, 1, packed.ilog2())
        .rows(Dim::Register, 8, u32::from(rows == 16))
        .columns(Dim::Register, 4 * packed, u32::from(k == 8 * packed))
        .columns(Dim::Lane, packed, 2)
        .rows(Dim::Lane, 1, 3)
}

/// Sixteen rows of an accumulator, a pair of columns in each lane.
fn accumulator(columns: u32) -> Fragment {
    Fragment::new(16, columns)
        .columns(Dim::Register, 1, 1)
        .rows(Dim::Register, 8, 1)
        .columns(Dim::Register, 8, columns.ilog2() - 3)
        .columns(Dim::Lane, 2, 2)
        .rows(Dim::Lane, 1, 3)
}
