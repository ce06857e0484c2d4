//! Decides where `wgmma.mma_async` expects the elements of an operand in shared memory, and the two byte offsets
//! of its descriptor. Knows nothing of who writes them. Invariants: the tile fills its memory without gaps; its
//! start is aligned to 8 rows of the swizzle (128 to 1024 bytes).
//!
//! The unit is a core matrix: 8 rows of 16 bytes. In K-major order a row runs along `k`, in MN-major order along
//! `m` or `n`. A swizzle of `w` bytes puts `w / 16` core matrices side by side, so that a row has `w` bytes, and
//! xors the high bits of the row's number into the number of the 16-byte chunk: `Sw<log2(w / 16), 4, 3>` on byte
//! addresses.

use alloc::format;
use alloc::vec::Vec;

use super::unsupported;
use crate::Swizzle;
use crate::linear::{Dim, LinearError, LinearLayout, MAX_LAYOUT_BITS};

/// Bytes of a core matrix's row.
const CHUNK_BYTES: u64 = 16;
/// Rows of a core matrix.
const CORE_ROWS: u64 = 8;

/// The axis along which an operand is contiguous.
///
/// ```
/// use tile_layout::linear::{Major, SwizzleWidth, wgmma_shared_operand};
/// // Only elements of 16 bits may lie with m or n contiguous.
/// assert!(wgmma_shared_operand(Major::MN, SwizzleWidth::Bytes128, 8, 64, 64).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// `k` is contiguous: row-major `A`, column-major `B`.
    K,
    /// `m` (or `n`) is contiguous.
    MN,
}

/// The width in bytes of the swizzle of a shared operand.
///
/// ```
/// assert_eq!(tile_layout::linear::SwizzleWidth::Bytes64.bits(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwizzleWidth {
    /// No swizzle: core matrices are contiguous.
    None,
    /// Rows of 32 bytes.
    Bytes32,
    /// Rows of 64 bytes.
    Bytes64,
    /// Rows of 128 bytes: no access along rows or columns of core matrices has a bank conflict.
    Bytes128,
}

impl SwizzleWidth {
    /// The bits that the swizzle exchanges, `B` of `Sw<B, 4, 3>`.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::SwizzleWidth::Bytes128.bits(), 3);
    /// ```
    pub const fn bits(self) -> u32 {
        match self {
            SwizzleWidth::None => 0,
            SwizzleWidth::Bytes32 => 1,
            SwizzleWidth::Bytes64 => 2,
            SwizzleWidth::Bytes128 => 3,
        }
    }
}

/// An operand tile in shared memory.
///
/// ```
/// use tile_layout::linear::{Major, SwizzleWidth, wgmma_shared_operand};
/// let operand = wgmma_shared_operand(Major::K, SwizzleWidth::Bytes32, 16, 64, 16)?;
/// assert_eq!(operand.stride_byte_offset, 256);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedOperand {
    /// `(Axis(0), Axis(1))`, the index along `m` or `n` and the index along `k`, to `Offset` in elements.
    pub layout: LinearLayout,
    /// The descriptor's leading dimension byte offset. Unused by the hardware, and 16, for swizzled K-major
    /// operands.
    pub leading_byte_offset: u64,
    /// The descriptor's stride dimension byte offset.
    pub stride_byte_offset: u64,
}

/// The canonical shared-memory layout of an `mn x k` operand of `wgmma.mma_async`, packed without gaps: atoms
/// (8 rows of the swizzle's width) follow each other along `m` or `n` first, then along `k`.
///
/// Source: PTX ISA, "Shared Memory Matrix Layout" and "Matrix Descriptor Format" of `wgmma`, canonical layouts
/// (`((8,m),(T,2k)):((8T,SBO),(1,T))` for K-major and 128 bytes, and so on, `T` elements in 16 bytes).
///
/// # Errors
/// [`LinearError::UnsupportedFragment`] for elements other than 8, 16 and 32 bits (MN-major: 16 only, as the
/// instruction transposes nothing else), [`LinearError::NotPowerOfTwo`] for an extent, and
/// [`LinearError::UnsupportedFragment`] for a tile smaller than one atom.
///
/// ```
/// use tile_layout::linear::{Dim, Major, SwizzleWidth, wgmma_shared_operand};
/// let operand = wgmma_shared_operand(Major::K, SwizzleWidth::Bytes128, 16, 128, 64)?;
/// assert_eq!(operand.stride_byte_offset, 1024);
/// // Row 1 starts in the second chunk of its 64 elements.
/// assert_eq!(operand.layout.apply(&[(Dim::Axis(0), 1)])?, [(Dim::Offset, 64 + 8)]);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn wgmma_shared_operand(
    major: Major,
    swizzle: SwizzleWidth,
    element_bits: u32,
    mn: u64,
    k: u64,
) -> Result<SharedOperand, LinearError> {
    let legal = match major {
        Major::K => matches!(element_bits, 8 | 16 | 32),
        Major::MN => element_bits == 16,
    };
    if !legal {
        return unsupported(
            "wgmma",
            format!("no {major:?}-major shared operand of {element_bits}-bit elements"),
        );
    }
    for extent in [mn, k] {
        if !extent.is_power_of_two() {
            return Err(LinearError::NotPowerOfTwo { what: "an extent of a shared operand", value: extent });
        }
    }
    let element_bytes = u64::from(element_bits / 8);
    let chunk = CHUNK_BYTES / element_bytes;
    let row = chunk << swizzle.bits();
    let (atom_mn, atom_k) = match major {
        Major::K => (CORE_ROWS, row),
        Major::MN => (row, CORE_ROWS),
    };
    if mn < atom_mn || k < atom_k {
        return unsupported(
            "wgmma",
            format!(
                "a shared operand of {mn} x {k} is smaller than one atom of {atom_mn} x {atom_k}; enlarge it"
            ),
        );
    }
    let (mn_bits, k_bits) = (mn.trailing_zeros(), k.trailing_zeros());
    let (atom_mn_bits, atom_k_bits) = (atom_mn.trailing_zeros(), atom_k.trailing_zeros());
    let atom = atom_mn * atom_k;
    let (mn_step, k_step) = match major {
        Major::K => (row, 1),
        Major::MN => (1, row),
    };
    // Elements' offsets before the swizzle; beyond the atom, `mn` runs first.
    let total_bits = mn_bits + k_bits;
    let byte_bits = total_bits + element_bytes.trailing_zeros();
    if byte_bits > MAX_LAYOUT_BITS {
        return Err(LinearError::TooManyBits { bits: u64::from(byte_bits), limit: MAX_LAYOUT_BITS });
    }
    let steps = |bits: u32, atom_bits: u32, inner: u64, outer: u64| -> Vec<[u64; 1]> {
        let inside = (0..atom_bits).map(|bit| [inner << bit]);
        inside.chain((0..bits - atom_bits).map(|bit| [outer << bit])).collect()
    };
    let atoms_along_mn = mn >> atom_mn_bits;
    let plain = LinearLayout::new(
        &[
            (Dim::Axis(0), &steps(mn_bits, atom_mn_bits, mn_step, atom)),
            (Dim::Axis(1), &steps(k_bits, atom_k_bits, k_step, atom * atoms_along_mn)),
        ],
        [(Dim::Offset, 1 << total_bits)],
    )?;
    // Sixteen-byte chunks stay whole. Three bits above the chunk's number lie the highest row bits of the atom.
    let base = chunk.trailing_zeros();
    let swizzled = if swizzle.bits() == 0 {
        plain
    } else {
        let swizzle = Swizzle::new(swizzle.bits().into(), base.into(), 3)?;
        LinearLayout::from_swizzle(swizzle, total_bits)?.compose(&plain)?
    };
    let (along_mn, along_k) = (atom * element_bytes, atom * atoms_along_mn * element_bytes);
    let (leading_byte_offset, stride_byte_offset) = match (major, swizzle) {
        (Major::K | Major::MN, SwizzleWidth::None) => (along_k, along_mn),
        (Major::K, _) => (CHUNK_BYTES, along_mn),
        (Major::MN, _) => (along_mn, along_k),
    };
    Ok(SharedOperand { layout: swizzled, leading_byte_offset, stride_byte_offset })
}
