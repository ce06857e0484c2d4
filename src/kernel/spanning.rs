//! Outputs of which a block owns more than one tile.

use super::persistent::TileOrder;
use super::view_tile::ViewTileMut;
use super::{Element, PartitionViewMut};

/// A mutable tensor cut into tiles, of which a block owns all along some axes: see [`PartitionViewMut::spanning`].
pub struct SpanningViewMut<'a, T, const R: usize, const S: usize> {
    pub(super) view: PartitionViewMut<'a, T, R>,
    pub(super) axes: [usize; S],
}

impl<'a, T: Element, const R: usize> PartitionViewMut<'a, T, R> {
    /// The view with blocks that own all tiles along these axes, given in ascending order: the grid has one block along
    /// each. Such a block names the tile that it loads or stores, [`SpanningViewMut::at`], and may store as many as it
    /// likes, in any order: what it carries from one to the next needn't fit into one tile.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// /// The sums of the elements up to each one, of rows of any length.
    /// #[tile_kernel]
    /// fn running_sums<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    ///     let x = x.partition_view([1, B]);
    ///     let mut y = y.partition_view_mut([1, B]).spanning([1]);
    ///     let [i, _] = y.index();
    ///     let mut before = Tile::zeros([1, 1]);
    ///     for j in 0..y.tiles(1) {
    ///         let t = x.load_masked([i, j]);
    ///         y.at([j]).store_masked(before + t.cumsum(1));
    ///         before += t.sum(1);
    ///     }
    /// }
    ///
    /// # fn main() -> tile::Result<()> {
    /// let device = Device::reference();
    /// let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, -1.0, 0.0, 1.0, 0.0, 1.0], [2, 5])?;
    /// let mut y = Tensor::zeros(&device, [2, 5])?;
    /// running_sums::<2>(&x, &mut y).launch()?;
    /// assert_eq!(y.to_vec()?, [1.0, 3.0, 6.0, 10.0, 15.0, -1.0, -1.0, 0.0, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If an axis is out of range, or they aren't in ascending order; in a kernel that is a compile error.
    #[must_use]
    pub fn spanning<const S: usize>(self, axes: [usize; S]) -> SpanningViewMut<'a, T, R, S> {
        let are_axes = axes.is_sorted_by(|before, after| before < after) && axes.iter().all(|&axis| axis < R);
        assert!(are_axes, "blocks span axes of a view of rank {R} in ascending order, not {axes:?}");
        SpanningViewMut { view: self, axes }
    }
}

impl<'a, T: Element, const R: usize, const S: usize> SpanningViewMut<'a, T, R, S> {
    /// The index of the first of the tiles that this block owns: 0 along the axes that blocks span.
    ///
    /// # Panics
    /// Outside of the loop over tiles of a persistent kernel, which in a kernel is a compile error.
    pub fn index(&self) -> [usize; R] {
        self.view.index()
    }

    /// The number of tiles along an axis; a tile that sticks out counts.
    pub fn tiles(&self, axis: usize) -> usize {
        self.view.tiles(axis)
    }

    /// The extent of the tensor along an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.view.extent(axis)
    }

    /// One of the block's tiles: an index for each axis that blocks span, in their order. It doesn't borrow the view, so
    /// what is stored may be made of what is there: `y.at([j]).store(y.at([j]).load() + t)`.
    pub fn at(&mut self, index: [usize; S]) -> ViewTileMut<'a, T, R> {
        let mut full = self.view.index();
        self.axes.iter().zip(index).for_each(|(&axis, index)| full[axis] = index);
        ViewTileMut::new(self.view.data, self.view.cut.clone(), full)
    }

    /// As [`PartitionViewMut::tiles_persistent`], for what blocks own of this view: all tiles along the axes that they
    /// span.
    pub fn tiles_persistent(
        &mut self,
        order: TileOrder,
    ) -> impl Iterator<Item = SpanningViewMut<'a, T, R, S>> {
        let axes = self.axes;
        self.view.tiles_persistent(order).map(move |view| SpanningViewMut { view, axes })
    }
}
