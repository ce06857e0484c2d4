//! Where the elements of a tensor lie in its memory: extents, and an offset for every index.
//!
//! Invariant: every offset that is read lies inside the memory that the descriptor was made for; movement operations
//! keep that, because they only choose among the offsets that are there.

use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::ops::Range;
use tile_ir::view::argument::{Strides, canonical};
use tile_layout::{Fill, Movement, View};

/// How many axes a shape has room for without allocating.
const INLINE: usize = 6;

/// Extents, outermost axis first.
pub(crate) type Shape = SmallVec<[usize; INLINE]>;

/// Where the elements of a tensor lie, from that which lies first on, as kernels see it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// One after the other in row-major order.
    Dense,
    /// So many elements apart along each axis, as `tile_ir::view::argument::canonical` says.
    Strided(&'a [i64]),
    /// Along some axis there is no single stride, or some elements aren't in memory.
    Unknown,
}

/// The extents and the view of a tensor's memory, counted in elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    shape: Shape,
    view: View,
    dense: bool,
    /// Strides as kernels take them: where it isn't dense, every element is in memory and every axis has one.
    strides: Option<Strides>,
}

impl Descriptor {
    /// Elements one after the other in row-major order.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub(crate) fn dense(shape: &[usize]) -> Result<Descriptor> {
        let view = signed(shape).and_then(|extents| View::row_major(&extents).ok());
        let view = view.ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })?;
        Ok(Descriptor { shape: shape.into(), view, dense: true, strides: None })
    }

    /// An element every so many along each axis, the one that lies first at offset 0.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Layout`] where there are more strides than extents, or fewer.
    pub(crate) fn strided(shape: &[usize], strides: &[i64]) -> Result<Descriptor> {
        let extents = signed(shape).ok_or_else(|| Error::TooLarge { shape: shape.to_vec() })?;
        let from_zero = View::strided(&extents, strides, 0)?;
        let before = from_zero.layout().min_offset();
        Ok(Descriptor::of(View::strided(&extents, strides, -before)?))
    }

    /// What a view says.
    pub(crate) fn of(view: View) -> Descriptor {
        let shape: Shape = view.shape().iter().map(|&extent| extent as usize).collect();
        let dense = view.is_contiguous();
        let strides =
            if dense || view.is_masked() || view.swizzle().bits() != 0 { None } else { view.strides() };
        let strides = strides.map(|strides| canonical(&shape, &strides));
        Descriptor { shape, view, dense, strides }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements lie one after the other in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        self.dense
    }

    /// The offset of the element with index 0 everywhere.
    pub(crate) fn first(&self) -> usize {
        usize::try_from(self.view.offset()).unwrap_or(0)
    }

    /// How kernels see where the elements lie.
    pub(crate) fn place(&self) -> Place<'_> {
        match &self.strides {
            _ if self.dense => Place::Dense,
            Some(strides) => Place::Strided(strides),
            None => Place::Unknown,
        }
    }

    /// The stride of each axis in elements; `None` where some axis has no single one, or
    /// elements that aren't in memory.
    pub(crate) fn strides(&self) -> Option<Vec<i64>> {
        if self.view.is_masked() { None } else { self.view.strides() }
    }

    /// The offsets from the least that is read to the greatest, that included.
    pub(crate) fn span(&self) -> Range<usize> {
        let layout = self.view.layout();
        if layout.size() == 0 {
            return 0..0;
        }
        let at = |distance: i64| usize::try_from(self.view.offset() + distance).unwrap_or(0);
        at(layout.min_offset())..at(layout.max_offset()) + 1
    }

    /// Whether no two indices have one offset, and each has one.
    pub(crate) fn is_writable(&self) -> bool {
        self.dense || (!self.view.is_masked() && self.view.layout().is_injective())
    }

    /// Whether others may lie between the elements.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.is_writable() || self.span().len() != self.len()
    }

    /// The value of elements that aren't in memory.
    pub(crate) fn fill(&self) -> Fill {
        self.view.fill()
    }

    /// Hands out the elements in row-major order as runs: the offset of the first, the distance to the next, and
    /// how many there are. A run without an offset isn't in memory.
    pub(crate) fn for_each_run(&self, mut run: impl FnMut(Option<i64>, i64, usize)) {
        if self.len() == 0 {
            return;
        }
        if self.dense {
            return run(Some(self.view.offset()), 1, self.len());
        }
        let Some(strides) = self.strides() else {
            return self.view.offsets().for_each(|offset| run(offset, 1, 1));
        };
        let (Some((&count, outer)), Some((&step, outer_strides))) =
            (self.shape.split_last(), strides.split_last())
        else {
            return run(Some(self.view.offset()), 1, 1);
        };
        let mut index: Shape = outer.iter().map(|_| 0).collect();
        let mut offset = self.view.offset();
        loop {
            run(Some(offset), step, count);
            let mut axis = outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return };
                axis = next;
                index[axis] += 1;
                offset += outer_strides[axis];
                if index[axis] < outer[axis] {
                    break;
                }
                offset -= outer_strides[axis] * index[axis] as i64;
                index[axis] = 0;
            }
        }
    }

    /// The parts before an index of an axis and from it on.
    pub(crate) fn split_at(&self, axis: i64, at: usize) -> Result<(Descriptor, Descriptor)> {
        // No axis is as long as what doesn't fit.
        let (before, after) = self.view.split_at(axis, i64::try_from(at).unwrap_or(i64::MAX))?;
        Ok((Descriptor::of(before), Descriptor::of(after)))
    }

    /// The tensor after a movement operation.
    pub(crate) fn moved(
        &self,
        operation: impl FnOnce(&View) -> tile_layout::Result<View>,
    ) -> Result<Descriptor> {
        Ok(Descriptor::of(operation(&self.view)?))
    }
}

fn signed(shape: &[usize]) -> Option<Vec<i64>> {
    shape.iter().map(|&extent| i64::try_from(extent).ok()).collect()
}
