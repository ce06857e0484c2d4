//! A tile of a mutable partition view, in memory: what a block that owns it does with it.

use super::cut::Cut;
use super::{Element, Tile};
use std::rc::Rc;
use tile_runtime::reference::WrittenElements;

/// A tile that a block owns, of a view whose blocks own several: see
/// [`SpanningViewMut::at`](super::SpanningViewMut::at).
pub struct ViewTileMut<'a, T, const R: usize> {
    data: WrittenElements<'a, T>,
    cut: Rc<Cut<R>>,
    index: [usize; R],
}

impl<'a, T: Element, const R: usize> ViewTileMut<'a, T, R> {
    pub(super) fn new(data: WrittenElements<'a, T>, cut: Rc<Cut<R>>, index: [usize; R]) -> Self {
        ViewTileMut { data, cut, index }
    }

    /// Where it is, along every axis.
    pub fn index(&self) -> [usize; R] {
        self.index
    }

    /// Begins to bring it near, as [`PartitionView::prefetch`](super::PartitionView::prefetch) does.
    pub fn prefetch(&self) {}

    /// Its elements, all of which exist: a launch whose tiles don't fit is refused.
    ///
    /// # Panics
    /// If an element doesn't exist, which a launch has excluded.
    pub fn load(&self) -> Tile<T, R> {
        self.cut.assert_whole("load", "load_masked", self.index);
        self.load_masked_or(T::default())
    }

    /// Its elements, with zeros, or `false`, in place of those outside the tensor.
    pub fn load_masked(&self) -> Tile<T, R> {
        self.load_masked_or(T::default())
    }

    /// Its elements, with `pad` in place of those outside the tensor.
    pub fn load_masked_or(&self, pad: T) -> Tile<T, R> {
        self.cut.load(self.index, pad, |position| self.data.get(position))
    }

    /// Writes it; all of its elements exist: a launch whose tiles don't fit is refused.
    ///
    /// # Panics
    /// If `tile` doesn't have the view's tile extents; in a kernel that is a compile error. If an element doesn't
    /// exist, which a launch has excluded.
    pub fn store(&mut self, tile: Tile<T, R>) {
        self.cut.assert_whole("store", "store_masked", self.index);
        self.store_masked(tile);
    }

    /// Writes it where it lies inside the tensor; at an index outside, nothing.
    ///
    /// # Panics
    /// If `tile` doesn't have the view's tile extents; in a kernel that is a compile error.
    pub fn store_masked(&mut self, tile: Tile<T, R>) {
        assert!(
            tile.shape() == self.cut.tile,
            "a tile of shape {:?} is stored to a view of tiles {:?}",
            tile.shape(),
            self.cut.tile
        );
        let values = tile.to_vec();
        self.cut.for_each_run(self.index, |in_tile, in_tensor, length| {
            for (i, &value) in values[in_tile..in_tile + length].iter().enumerate() {
                self.data.set(in_tensor(i), value);
            }
        });
    }
}
