//! Swizzles: permutations of offsets that xor some bits with others, and layouts seen through them.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use alloc::format;
use core::fmt;

/// `Sw<B,M,S>`: `x ⊕ ((x & Y) ≫ S)` with `Y` the `B` bits from `M + max(S, 0)` up; a negative `S` shifts left.
///
/// It is its own inverse, linear over GF(2), keeps the lowest `M` bits and repeats every `2^(B+M+|S|)` elements
/// (CuTe, `cute/swizzle.hpp`). Offsets are in elements; [`Swizzle::recast`] changes the unit. One of no bits is
/// [`Swizzle::IDENTITY`], whatever its base and its shift.
///
/// ```
/// use tile_layout::Swizzle;
/// let swizzle = Swizzle::new(3, 0, 3)?;
/// assert_eq!((swizzle.apply(8), swizzle.apply(10), swizzle.apply(7)), (9, 11, 7));
/// assert_eq!(swizzle.apply(swizzle.apply(123)), 123);
/// assert_eq!(swizzle, "Sw<3,0,3>".parse()?);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Swizzle {
    bits: u8,
    base: u8,
    shift: i8,
}

impl Swizzle {
    /// The swizzle that changes nothing.
    ///
    /// ```
    /// assert_eq!(tile_layout::Swizzle::IDENTITY.apply(13), 13);
    /// ```
    pub const IDENTITY: Swizzle = Swizzle { bits: 0, base: 0, shift: 0 };

    /// A swizzle of `bits` bits above the lowest `base`, taken from `shift` bits higher (or lower).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSwizzle`] unless `bits` and `base` are 0 or more, `|shift| ≥ bits` (the bits that are
    /// read and written do not overlap) and all bits lie below 62.
    ///
    /// ```
    /// use tile_layout::Swizzle;
    /// assert!(Swizzle::new(3, 4, 3).is_ok() && Swizzle::new(3, 4, -3).is_ok());
    /// assert!(Swizzle::new(3, 4, 2).is_err());
    /// assert_eq!(Swizzle::new(0, 4, 3), Ok(Swizzle::IDENTITY));
    /// ```
    pub fn new(bits: i64, base: i64, shift: i64) -> Result<Swizzle> {
        let fits = (0..=31).contains(&bits) && (0..=61).contains(&base) && (-61..=61).contains(&shift);
        if !fits || shift.abs() < bits || bits + base + shift.abs() > 62 {
            return Err(LayoutError::new(
                ErrorKind::InvalidSwizzle,
                format!(
                    "Sw<{bits},{base},{shift}> is no swizzle: bits and base must be 0 or more, the shift at least \
                     as far as the bits are many, and bits + base + |shift| at most 62"
                ),
            ));
        }
        if bits == 0 {
            return Ok(Swizzle::IDENTITY);
        }
        Ok(Swizzle { bits: bits as u8, base: base as u8, shift: shift as i8 })
    }

    /// How many bits are xored: `B`.
    ///
    /// ```
    /// assert_eq!(tile_layout::Swizzle::new(3, 4, 5)?.bits(), 3);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn bits(self) -> i64 {
        self.bits.into()
    }

    /// How many low bits stay: `M`.
    ///
    /// ```
    /// assert_eq!(tile_layout::Swizzle::new(3, 4, 5)?.base(), 4);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn base(self) -> i64 {
        self.base.into()
    }

    /// From how much higher (or, negative, lower) the bits come: `S`.
    ///
    /// ```
    /// assert_eq!(tile_layout::Swizzle::new(3, 4, 5)?.shift(), 5);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn shift(self) -> i64 {
        self.shift.into()
    }

    /// After how many elements the pattern repeats: `2^(B+M+|S|)`, 1 for a swizzle of no bits.
    ///
    /// ```
    /// assert_eq!(tile_layout::Swizzle::new(3, 4, 3)?.period(), 1024);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn period(self) -> i64 {
        if self.bits == 0 { 1 } else { 1 << (self.bits + self.base + self.shift.unsigned_abs()) }
    }

    /// Where offset `x` goes. Negative offsets are taken as two's complement, as hardware does.
    ///
    /// ```
    /// assert_eq!(tile_layout::Swizzle::new(1, 0, 3)?.apply(8), 9);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn apply(self, x: i64) -> i64 {
        let mask = (1i64 << self.bits) - 1;
        let high = self.shift.max(0) as u8;
        let read = x & (mask << (self.base + high));
        if self.shift >= 0 { x ^ (read >> self.shift) } else { x ^ (read << -self.shift) }
    }

    /// The same permutation of memory with elements of `new_bits` instead of `old_bits`.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`] where the ratio is not a power of two, or a wider element would straddle bits
    /// that are xored; [`ErrorKind::InvalidSwizzle`] where bits beyond those of offsets would be.
    ///
    /// ```
    /// use tile_layout::Swizzle;
    /// // 128-byte rows, counted in bytes and in elements of 16 bits.
    /// assert_eq!(Swizzle::new(3, 4, 3)?.recast(8, 16)?, Swizzle::new(3, 3, 3)?);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn recast(self, old_bits: i64, new_bits: i64) -> Result<Swizzle> {
        let powers = [old_bits, new_bits].iter().all(|&bits| bits > 0 && bits.count_ones() == 1);
        if !powers {
            return Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!(
                    "{self} cannot be counted in elements of {new_bits} instead of {old_bits} bits: not powers of two"
                ),
            ));
        }
        if self == Swizzle::IDENTITY {
            return Ok(self);
        }
        let base = self.base() + i64::from(old_bits.trailing_zeros()) - i64::from(new_bits.trailing_zeros());
        if base < 0 {
            return Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!("{self} moves parts of elements of {new_bits} bits"),
            ));
        }
        Swizzle::new(self.bits(), base, self.shift()).map_err(|_| {
            let message = format!(
                "{self} counted in elements of {new_bits} instead of {old_bits} bits would move bits beyond the 62 of an offset"
            );
            LayoutError::new(ErrorKind::InvalidSwizzle, message)
        })
    }
}

impl fmt::Debug for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A layout seen through a swizzle: `c ↦ σ(offset + layout(c))` (CuTe's `ComposedLayout`).
///
/// ```
/// use tile_layout::{Layout, Swizzle, SwizzledLayout};
/// let rows = Layout::row_major([8, 8])?;
/// let swizzled = SwizzledLayout::new(Swizzle::new(3, 0, 3)?, 0, rows)?;
/// assert_eq!(swizzled.to_string(), "Sw<3,0,3> o 0 o (8,8):(8,1)");
/// // Column 0 of all rows lies in eight different columns of memory.
/// let columns: Vec<i64> = (0..8).filter_map(|row| swizzled.get(row)).map(|offset| offset % 8).collect();
/// assert_eq!(columns, [0, 1, 2, 3, 4, 5, 6, 7]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SwizzledLayout {
    swizzle: Swizzle,
    offset: i64,
    layout: Layout,
}

impl SwizzledLayout {
    /// `c ↦ swizzle(offset + layout(c))`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] where an offset is negative, [`ErrorKind::Overflow`] where one exceeds 2^62.
    ///
    /// ```
    /// use tile_layout::{Layout, Swizzle, SwizzledLayout};
    /// assert!(SwizzledLayout::new(Swizzle::new(3, 0, 3)?, 0, "8:-1".parse()?).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(swizzle: Swizzle, offset: i64, layout: Layout) -> Result<SwizzledLayout> {
        let (least, most) =
            (offset.checked_add(layout.min_offset()), offset.checked_add(layout.max_offset()));
        match (least, most) {
            // The period is at most 2^62, so an offset below 2^62 stays there.
            (Some(0..), Some(most)) if most < 1 << 62 => Ok(SwizzledLayout { swizzle, offset, layout }),
            (Some(0..), _) | (None, _) => Err(LayoutError::new(
                ErrorKind::Overflow,
                format!("{layout} from offset {offset} leaves the offsets that can be swizzled"),
            )),
            (Some(least), _) => Err(LayoutError::new(
                ErrorKind::OutOfBounds,
                format!("{layout} from offset {offset} reaches offset {least}; swizzled memory starts at 0"),
            )),
        }
    }

    /// The swizzle, applied last.
    ///
    /// ```
    /// let swizzled: tile_layout::SwizzledLayout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
    /// assert_eq!(swizzled.swizzle().bits(), 3);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// What is added before the swizzle.
    ///
    /// ```
    /// let swizzled: tile_layout::SwizzledLayout = "Sw<3,0,3> o 64 o (8,8):(8,1)".parse()?;
    /// assert_eq!(swizzled.offset(), 64);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The layout, applied first.
    ///
    /// ```
    /// let swizzled: tile_layout::SwizzledLayout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
    /// assert_eq!(swizzled.layout().size(), 64);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Offset in memory of a linear index; `None` outside the layout.
    ///
    /// ```
    /// let swizzled: tile_layout::SwizzledLayout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
    /// assert_eq!(swizzled.get(1), Some(9));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn get(&self, index: i64) -> Option<i64> {
        self.layout.get(index).map(|offset| self.swizzle.apply(self.offset + offset))
    }

    /// All offsets in linear order, the first mode fastest.
    ///
    /// ```
    /// let swizzled: tile_layout::SwizzledLayout = "Sw<1,0,1> o 0 o 4:1".parse()?;
    /// assert_eq!(swizzled.offsets().collect::<Vec<_>>(), [0, 1, 3, 2]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offsets(&self) -> impl Iterator<Item = i64> {
        self.layout.offsets().map(|offset| self.swizzle.apply(self.offset + offset))
    }

    /// Part of this layout: `c ↦ self(right(c))`. The swizzle stays outside.
    ///
    /// # Errors
    /// As [`Layout::compose`].
    ///
    /// ```
    /// let swizzled: tile_layout::SwizzledLayout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
    /// assert_eq!(swizzled.compose([4, 2])?.to_string(), "Sw<3,0,3> o 0 o (4,2):(8,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn compose(&self, right: impl Into<crate::Tiler>) -> Result<SwizzledLayout> {
        SwizzledLayout::new(self.swizzle, self.offset, self.layout.compose(right)?)
    }
}

impl fmt::Debug for SwizzledLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// Without bits there is nothing that a base or a shift could say more about.
    #[test]
    fn a_swizzle_of_no_bits_is_the_identity() {
        for (base, shift) in [(0, 0), (0, 3), (4, -3), (61, 0), (0, 61)] {
            let swizzle = Swizzle::new(0, base, shift).unwrap();
            assert_eq!(swizzle, Swizzle::IDENTITY, "Sw<0,{base},{shift}>");
            assert_eq!((swizzle.apply(13), swizzle.period()), (13, 1));
            for (old, new) in [(8, 16), (16, 8), (1, 128), (128, 1)] {
                assert_eq!(swizzle.recast(old, new), Ok(Swizzle::IDENTITY), "from {old} to {new} bits");
            }
        }
        assert!(Swizzle::new(0, 62, 0).is_err());
    }

    #[test]
    fn a_recast_that_leaves_the_bits_names_the_swizzle_asked_for() {
        let high = Swizzle::new(1, 60, 1).unwrap();
        assert_eq!(
            high.recast(16, 8).unwrap_err().to_string(),
            "Sw<1,60,1> counted in elements of 8 instead of 16 bits would move bits beyond the 62 of an offset"
        );
    }
}
