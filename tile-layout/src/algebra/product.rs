//! Products: a layout repeated.
//!
//! `logical_product(A, B) = (A, complement(A, size A · cosize B) ∘ B)`: mode 0 is `A`, mode 1 walks over copies
//! of it in the order of `B`. The blocked product joins the modes so that copies lie in blocks, the raked one so
//! that they interleave.

use super::tiler::{Cut, Tiler};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Layout, Part};
use crate::tuple::{IntTuple, Ints};
use alloc::format;
use alloc::vec::Vec;

impl Layout {
    /// `(self, copies)`: one copy of `self` for each element of `copies`. With a tiler of several modes, each mode
    /// of `self` is repeated by the one in its place.
    ///
    /// # Errors
    /// As [`Layout::complement`] and [`Layout::compose`], where no copies fit beside `self` evenly.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let tile: Layout = "(2,2):(4,1)".parse()?;
    /// assert_eq!(tile.logical_product(6)?.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn logical_product(&self, copies: impl Into<Tiler>) -> Result<Layout> {
        self.product_by_cut(copies.into().cut())
    }

    fn product_by_cut(&self, copies: Cut<'_>) -> Result<Layout> {
        match copies {
            Cut::Keep => Ok(self.clone()),
            Cut::Whole(copies) => Layout::concat(&[self.clone(), self.repeated(&copies.to_layout())?]),
            Cut::Run(count) => Layout::concat(&[self.clone(), self.repeated(&Layout::leaf(count, 1)?)?]),
            Cut::ByMode(cuts) => {
                cuts.count_within(self.rank())?;
                let repeat = |(mode, cut): (Layout, Cut<'_>)| mode.product_by_cut(cut);
                Layout::concat(&self.modes().zip(cuts.each()).map(repeat).collect::<Result<Vec<_>>>()?)
            }
        }
    }

    /// The walk from copy to copy.
    fn repeated(&self, copies: &Layout) -> Result<Layout> {
        // Without elements there is nothing to repeat, but the copies still have their shape.
        let reach = self.size().max(1).checked_mul(copies.cosize()).ok_or_else(|| {
            LayoutError::new(ErrorKind::Overflow, format!("{copies} copies of {self} exceed 2^62"))
        })?;
        self.complement(reach.max(1))?.compose(copies)
    }

    /// Copies of `self` in blocks: mode `k` is `(self_k, copies_k)`. The smaller rank is filled with `1:0`.
    ///
    /// # Errors
    /// As [`Layout::logical_product`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let tile: Layout = "(2,5):(5,1)".parse()?;
    /// let copies: Layout = "(3,4):(1,3)".parse()?;
    /// assert_eq!(tile.blocked_product(&copies)?.to_string(), "(6,(5,4)):(5,(1,30))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn blocked_product(&self, copies: &Layout) -> Result<Layout> {
        self.zip_product(copies, |own, copy| [own, copy])
    }

    /// Copies of `self` interleaved: mode `k` is `(copies_k, self_k)`. The smaller rank is filled with `1:0`.
    ///
    /// # Errors
    /// As [`Layout::logical_product`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let tile: Layout = "(2,5):(5,1)".parse()?;
    /// let copies: Layout = "(3,4):(1,3)".parse()?;
    /// assert_eq!(tile.raked_product(&copies)?.to_string(), "((3,2),(4,5)):((10,5),(30,1))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn raked_product(&self, copies: &Layout) -> Result<Layout> {
        self.zip_product(copies, |own, copy| [copy, own])
    }

    fn zip_product(&self, copies: &Layout, join: impl Fn(Layout, Layout) -> [Layout; 2]) -> Result<Layout> {
        let rank = self.rank().max(copies.rank());
        let fill = |layout: &Layout| -> Result<Layout> {
            let mut modes: Vec<Layout> = layout.modes().collect();
            modes.resize(rank, Layout::unit());
            Layout::concat(&modes)
        };
        let (own, copies) = (fill(self)?, fill(copies)?);
        let walk = own.repeated(&copies)?;
        let joined: Vec<Layout> = own
            .modes()
            .zip(walk.modes())
            .map(|(own, copy)| Layout::concat(&join(own, copy)).map(|mode| mode.coalesce()))
            .collect::<Result<_>>()?;
        Layout::concat(&joined)
    }

    /// `self` repeated until it fills `shape`, the copies in the order of the numbers in `order` (one per mode,
    /// as in [`Layout::ordered`]).
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where shape, order and `self` have different numbers of modes,
    /// [`ErrorKind::NotDivisible`] where a mode of `self` does not divide its extent; otherwise as
    /// [`Layout::logical_product`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let atom: Layout = "(8,8):(8,1)".parse()?;
    /// assert_eq!(atom.tile_to_shape(&[16, 32], &[0, 1])?.to_string(), "(16,(8,4)):(8,(1,128))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tile_to_shape(&self, shape: &[i64], order: &[i64]) -> Result<Layout> {
        if shape.len() != self.rank() || order.len() != self.rank() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("{self} has {} modes, shape {shape:?} and order {order:?} differ", self.rank()),
            ));
        }
        let copies =
            self.part().children().map(Part::size).zip(shape).enumerate().map(|(mode, (own, &whole))| {
                if own > 0 && whole % own == 0 {
                    return Ok(whole / own);
                }
                Err(LayoutError::at(
                    ErrorKind::NotDivisible,
                    &[mode],
                    format!("mode {mode} of {self} has {own} elements, which do not divide {whole}"),
                ))
            });
        let copies: Ints = copies.collect::<Result<_>>()?;
        self.blocked_product(&Layout::ordered(IntTuple::flat(&copies), IntTuple::flat(order))?)
    }
}
