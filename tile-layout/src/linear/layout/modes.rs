//! Decides when an integer layout (extents and strides) is the same function as a linear one, both ways. Knows
//! nothing of threads. Invariant: a conversion is exact or refused.
//!
//! `Σ xₖ·strideₖ` is linear over GF(2) exactly when no sum of offsets of single bits carries, which is when the
//! offsets of the single bits are pairwise disjoint as bit sets. Strides needn't be powers of two: a mode
//! `4:5` has the offsets 5 and 10.

use alloc::vec::Vec;

use super::{Dim, Group, LinearLayout, MAX_LAYOUT_BITS};
use crate::Swizzle;
use crate::linear::{BitMatrix, LinearError, matrix::low_bits};

impl LinearLayout {
    /// The layout of an integer layout: mode `k`, of `(extent, stride)`, becomes `Axis(k)`, and the output is the
    /// `Offset`. The flat input is the colexicographic index: the first mode runs fastest. The stride of a mode
    /// of extent 1 doesn't matter.
    ///
    /// # Errors
    /// [`LinearError::NotPowerOfTwo`], [`LinearError::NegativeStride`], [`LinearError::OverlappingModes`] and
    /// [`LinearError::OffsetOverflow`] name the mode that isn't linear; [`LinearError::TooManyBits`] above 63
    /// index bits or 256 modes.
    ///
    /// ```
    /// use tile_layout::linear::{LinearError, LinearLayout};
    /// let row_major = LinearLayout::from_modes(&[(4, 8), (8, 1)])?;
    /// assert_eq!(row_major.matrix().columns(), [8, 16, 1, 2, 4]);
    /// let padded = LinearLayout::from_modes(&[(4, 9), (8, 1)]);
    /// assert_eq!(padded, Err(LinearError::OverlappingModes { mode: 0, other: 1, bit: 0 }));
    /// # Ok::<(), LinearError>(())
    /// ```
    pub fn from_modes(modes: &[(u64, i64)]) -> Result<LinearLayout, LinearError> {
        let mut inputs = Vec::with_capacity(modes.len());
        // One bit of the index: the mode it belongs to and its offset.
        let mut bits: Vec<(usize, u64)> = Vec::new();
        for (mode, &(extent, stride)) in modes.iter().enumerate() {
            let Ok(axis) = u8::try_from(mode) else {
                return Err(LinearError::TooManyBits {
                    bits: modes.len() as u64,
                    limit: u32::from(u8::MAX) + 1,
                });
            };
            if !extent.is_power_of_two() {
                return Err(LinearError::NotPowerOfTwo { what: "the extent of a mode", value: extent });
            }
            let group = Group { dim: Dim::Axis(axis), bits: extent.trailing_zeros() };
            inputs.push(group);
            if group.bits == 0 {
                continue;
            }
            let stride = u64::try_from(stride).map_err(|_| LinearError::NegativeStride { mode, stride })?;
            for bit in 0..group.bits {
                let offset = stride << bit;
                if offset >> bit != stride || offset > low_bits(MAX_LAYOUT_BITS) {
                    return Err(LinearError::OffsetOverflow { mode });
                }
                if let Some(&(earlier, shared)) = bits.iter().find(|&&(_, other)| other & offset != 0) {
                    let bit = (shared & offset).trailing_zeros();
                    return Err(LinearError::OverlappingModes { mode: earlier, other: mode, bit });
                }
                bits.push((mode, offset));
            }
        }
        super::check_groups(&inputs)?;
        let columns: Vec<u64> = bits.into_iter().map(|(_, offset)| offset).collect();
        let rows = u64::BITS - columns.iter().fold(0, |all, column| all | column).leading_zeros();
        let offset = Group { dim: Dim::Offset, bits: rows };
        LinearLayout::from_matrix(&inputs, &[offset], BitMatrix::new(rows, &columns)?)
    }

    /// The shortest integer layout with the same flat function, as `(extent, stride)` modes with the first
    /// fastest; `None` where there is none, as for a swizzle.
    ///
    /// ```
    /// use tile_layout::linear::LinearLayout;
    /// let layout = LinearLayout::from_modes(&[(2, 1), (4, 2), (2, 32)])?;
    /// assert_eq!(layout.to_modes(), Some(vec![(8, 1), (2, 32)]));
    /// assert_eq!(LinearLayout::from_swizzle("Sw<1,0,1>".parse()?, 2)?.to_modes(), None);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn to_modes(&self) -> Option<Vec<(u64, i64)>> {
        let mut used = 0;
        let mut modes: Vec<(u64, i64)> = Vec::new();
        for &column in self.matrix.columns() {
            if column & used != 0 {
                return None;
            }
            used |= column;
            let stride = i64::try_from(column).ok()?;
            match modes.last_mut() {
                // Extents stay below 2^63 and products below the disjoint columns' sum, so neither wraps.
                Some((extent, first)) if first.checked_mul(extent.cast_signed()) == Some(stride) => {
                    *extent *= 2
                }
                _ => modes.push((2, stride)),
            }
        }
        Some(modes)
    }

    /// A swizzle of memory offsets of `width` bits.
    ///
    /// # Errors
    /// [`LinearError::SwizzleTooWide`] where the swizzle's period exceeds `2^width`;
    /// [`LinearError::TooManyBits`].
    ///
    /// ```
    /// use tile_layout::{Swizzle, linear::LinearLayout};
    /// let swizzle = LinearLayout::from_swizzle(Swizzle::new(3, 4, 3)?, 10)?;
    /// assert_eq!(swizzle.apply_flat(0b001_000_0000)?, 0b001_001_0000);
    /// assert_eq!(swizzle.compose(&swizzle)?, LinearLayout::from_swizzle(Swizzle::IDENTITY, 10)?);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn from_swizzle(swizzle: Swizzle, width: u32) -> Result<LinearLayout, LinearError> {
        let side = [Group { dim: Dim::Offset, bits: width }];
        super::check_groups(&side)?;
        if swizzle.period().ilog2() > width {
            return Err(LinearError::SwizzleTooWide { swizzle, width });
        }
        let columns: Vec<u64> = (0..width).map(|bit| swizzle.apply(1 << bit).cast_unsigned()).collect();
        LinearLayout::from_matrix(&side, &side, BitMatrix::new(width, &columns)?)
    }
}
