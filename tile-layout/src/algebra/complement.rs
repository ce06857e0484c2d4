//! The complement: the layout that counts through what a layout leaves out.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode, Modes};
use alloc::format;

impl Layout {
    /// The layout `R` of the offsets that `self` skips, so that `(self, R)` together reach at least `cotarget`
    /// elements, each once: `R` is ordered, shares with `self` only offset 0, and `self(i) + R(j)` are all
    /// different.
    ///
    /// # Errors
    /// [`ErrorKind::NotComplementable`], naming the leaf, where a stride is not a multiple of what lies below
    /// it; [`ErrorKind::NegativeStride`]; [`ErrorKind::InvalidExtent`] where `cotarget` is less than 1.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let pairs: Layout = "(2,2):(1,6)".parse()?;
    /// assert_eq!(pairs.complement(24)?.to_string(), "(3,2):(2,12)");
    /// assert_eq!("(4,2):(1,2)".parse::<Layout>()?.complement(24).unwrap_err().modes(), [1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn complement(&self, cotarget: i64) -> Result<Layout> {
        if cotarget < 1 {
            return Err(LayoutError::new(
                ErrorKind::InvalidExtent,
                format!("a complement must reach 1 element or more, not {cotarget}"),
            ));
        }
        if self.size() == 0 {
            return Layout::leaf(cotarget, 1);
        }
        let mut skipped = Modes::new();
        let mut reached = 1i64;
        for (leaf, mode) in self.moving_modes_by_stride()? {
            if mode.stride % reached != 0 {
                return Err(LayoutError::at(
                    ErrorKind::NotComplementable,
                    &[leaf],
                    format!(
                        "{self} has no complement: stride {} of mode {leaf} is not a multiple of the {reached} \
                         elements that the modes below it span",
                        mode.stride
                    ),
                ));
            }
            skipped.push(Mode::new(mode.stride / reached, reached));
            // One more than an offset of the layout, at most.
            reached = mode.stride.saturating_mul(mode.extent);
        }
        skipped.push(Mode::new((cotarget - 1) / reached + 1, reached));
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&skipped));
        builder.finish()
    }

    /// The modes of more than one element and stride other than 0, with their places among the leaves, the
    /// smallest stride first.
    pub(crate) fn moving_modes_by_stride(
        &self,
    ) -> Result<smallvec::SmallVec<[(usize, Mode); crate::tuple::INLINE]>> {
        let moving = |&(_, mode): &(usize, Mode)| mode.extent != 1 && mode.stride != 0;
        let mut modes: smallvec::SmallVec<[(usize, Mode); crate::tuple::INLINE]> =
            self.leaves().iter().copied().enumerate().filter(moving).collect();
        if let Some((leaf, mode)) = modes.iter().find(|(_, mode)| mode.stride < 0) {
            return Err(LayoutError::at(
                ErrorKind::NegativeStride,
                &[*leaf],
                format!("stride {} of mode {leaf} of {self} is negative; flip the mode first", mode.stride),
            ));
        }
        modes.sort_by_key(|(_, mode)| (mode.stride, mode.extent));
        Ok(modes)
    }
}
