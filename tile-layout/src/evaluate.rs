//! Layouts as functions: coordinates to offsets, indices to coordinates, and what can be said of all offsets.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Layout, Modes, Part};
use crate::tuple::{IntTuple, Ints, children, is_leaf, leaf_count};
use alloc::format;

impl Layout {
    /// The offset at a coordinate. A coordinate may be as fine as the shape or coarser: an integer in the place
    /// of a tuple of modes counts through them, the first mode fastest (CuTe's `crd2idx`).
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where the coordinate nests differently, [`ErrorKind::OutOfBounds`] where one of its
    /// integers lies outside its extent.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,3)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.offset(&(3, (1, 2)).into())?, 23);
    /// assert_eq!(layout.offset(&(3, 5).into())?, 23);
    /// assert_eq!(layout.offset(&23.into())?, 23);
    /// assert!(layout.offset(&(4, 0).into()).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offset(&self, coordinate: &IntTuple) -> Result<i64> {
        offset_in(self.part(), coordinate.nesting.tokens(), &coordinate.leaves)
            .map_err(|reason| reason.error(self, coordinate))
    }

    /// The offset at a linear index, the first mode fastest; `None` outside `0..size`.
    ///
    /// ```
    /// let rows: tile_layout::Layout = "(2,3):(3,1)".parse()?;
    /// assert_eq!((rows.get(1), rows.get(2), rows.get(6)), (Some(3), Some(1), None));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn get(&self, index: i64) -> Option<i64> {
        (0..self.size()).contains(&index).then(|| at_index(self.part(), index))
    }

    /// All offsets in linear order, the first mode fastest.
    ///
    /// ```
    /// let rows: tile_layout::Layout = "(2,3):(3,1)".parse()?;
    /// assert_eq!(rows.offsets().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offsets(&self) -> impl Iterator<Item = i64> {
        (0..self.size()).map(|index| at_index(self.part(), index))
    }

    /// Whether no two coordinates share an offset.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// assert!("(4,2):(1,4)".parse::<Layout>()?.is_injective());
    /// assert!(!"(4,2):(1,2)".parse::<Layout>()?.is_injective());
    /// assert!(!"(4,2):(1,0)".parse::<Layout>()?.is_injective());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_injective(&self) -> bool {
        if self.size() == 0 {
            return true;
        }
        let mut modes: Modes = self.leaves().iter().copied().filter(|mode| mode.extent > 1).collect();
        if modes.iter().any(|mode| mode.stride == 0) || self.span() < self.size() {
            return false;
        }
        modes.iter_mut().for_each(|mode| mode.stride = mode.stride.abs());
        modes.sort_by_key(|mode| mode.stride);
        !difference_vanishes(&modes, 0, true)
    }

    /// Whether the offsets are exactly `0..size`, each once.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// assert!("(4,2):(2,1)".parse::<Layout>()?.is_compact());
    /// assert!(!"(4,2):(1,8)".parse::<Layout>()?.is_compact());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_compact(&self) -> bool {
        self.min_offset() == 0 && self.cosize() == self.size() && self.is_injective()
    }

    /// Whether two layouts have the same size and the same offset at every linear index.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let split: Layout = "(2,2,3):(1,2,4)".parse()?;
    /// assert!(split.is_same_function(&"12:1".parse()?));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_same_function(&self, other: &Layout) -> bool {
        // Coalescing is canonical for the function of a linear index.
        self.size() == other.size()
            && (self.size() == 0 || self.coalesce().leaves() == other.coalesce().leaves())
    }
}

impl IntTuple {
    /// The coordinate of a linear index in this shape, the first mode fastest (CuTe's `idx2crd`).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] where the index lies outside the shape.
    ///
    /// ```
    /// use tile_layout::IntTuple;
    /// assert_eq!(IntTuple::from((4, (2, 3))).coordinate(23)?.to_string(), "(3,(1,2))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coordinate(&self, index: i64) -> Result<IntTuple> {
        let size = self.product()?;
        if self.leaves.iter().any(|&extent| extent < 0) || !(0..size).contains(&index) {
            return Err(LayoutError::new(
                ErrorKind::OutOfBounds,
                format!("index {index} lies outside shape {self} of {size} elements"),
            ));
        }
        let mut rest = index;
        let digit = |&extent: &i64| {
            let digit = rest % extent;
            rest /= extent;
            digit
        };
        let leaves: Ints = self.leaves.iter().map(digit).collect();
        Ok(IntTuple { leaves, nesting: self.nesting.clone() })
    }
}

/// The offset at a linear index inside the layout.
pub(crate) fn at_index(part: Part<'_>, index: i64) -> i64 {
    let mut rest = index;
    let mut offset = 0;
    for mode in part.modes {
        offset += rest % mode.extent * mode.stride;
        rest /= mode.extent;
    }
    offset
}

/// What is wrong with a coordinate.
enum Mismatch {
    Nesting,
    Bounds { coordinate: i64, extent: i64 },
}

impl Mismatch {
    fn error(self, layout: &Layout, coordinate: &IntTuple) -> LayoutError {
        let shape = layout.shape();
        match self {
            Mismatch::Nesting => LayoutError::new(
                ErrorKind::Rank,
                format!("coordinate {coordinate} does not nest like shape {shape}, nor more coarsely"),
            ),
            Mismatch::Bounds { coordinate: part, extent } => LayoutError::new(
                ErrorKind::OutOfBounds,
                format!(
                    "{part} in coordinate {coordinate} lies outside its extent {extent} in shape {shape}"
                ),
            ),
        }
    }
}

fn offset_in(part: Part<'_>, tokens: &[u32], leaves: &[i64]) -> core::result::Result<i64, Mismatch> {
    if is_leaf(tokens) {
        let extent = part.size();
        let coordinate = leaves[0];
        return match (0..extent).contains(&coordinate) {
            true => Ok(at_index(part, coordinate)),
            false => Err(Mismatch::Bounds { coordinate, extent }),
        };
    }
    if part.is_leaf() || part.rank() != crate::tuple::rank(tokens) {
        return Err(Mismatch::Nesting);
    }
    let mut rest = leaves;
    part.children().zip(children(tokens)).try_fold(0, |offset, (mode, tokens)| {
        let (own, after) = rest.split_at(leaf_count(tokens));
        rest = after;
        Ok(offset + offset_in(mode, tokens, own)?)
    })
}

/// Whether some difference of two coordinates, not zero in every mode, adds up to `-sum`. Modes are sorted by
/// stride, all positive. The search takes the largest stride first and only the few multiples of it that the
/// smaller ones can still cancel, so it is quick for every layout that is not built to resist it.
fn difference_vanishes(modes: &[crate::Mode], sum: i64, all_zero: bool) -> bool {
    let Some((largest, smaller)) = modes.split_last() else { return sum == 0 && !all_zero };
    let reach: i64 = smaller.iter().map(|mode| (mode.extent - 1) * mode.stride).sum();
    let (sum, reach, stride) = (i128::from(sum), i128::from(reach), i128::from(largest.stride));
    let limit = i128::from(largest.extent - 1);
    let from = (-reach - sum).div_euclid(stride) + i128::from((-reach - sum).rem_euclid(stride) != 0);
    let to = (reach - sum).div_euclid(stride);
    // Differences come in pairs of opposite sign: while all larger ones are zero, half of them are enough.
    let from = if all_zero { from.max(0) } else { from.max(-limit) };
    (from..=to.min(limit)).any(|steps| {
        let next = sum + steps * stride;
        difference_vanishes(smaller, next as i64, all_zero && steps == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn injectivity_agrees_with_a_table() {
        for a in 0..5 {
            for b in -7..8 {
                for c in 0..9 {
                    let layout = Layout::new((3, 2, 4), (a, b, c)).unwrap();
                    let distinct: BTreeSet<i64> = layout.offsets().collect();
                    assert_eq!(layout.is_injective(), distinct.len() == 24, "{layout}");
                }
            }
        }
        let large = Layout::new((1 << 20, 1 << 20), (1 << 20, 1)).unwrap();
        assert!(large.is_injective() && large.is_compact());
        assert!(!Layout::new((1 << 20, 1 << 20), (1 << 19, 1)).unwrap().is_injective());
    }

    #[test]
    fn an_empty_layout_has_no_elements_and_no_offsets() {
        let empty = Layout::new((4, 0), (1, 4)).unwrap();
        assert_eq!((empty.size(), empty.cosize(), empty.span(), empty.get(0)), (0, 0, 0, None));
        assert!(empty.is_injective() && empty.offsets().next().is_none());
    }
}
