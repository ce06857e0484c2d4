//! The loop over tiles of a persistent kernel.

use super::Element;
use super::views::PartitionViewMut;
pub use tile_ir::tile_order::TileOrder;
pub use tile_ir::tile_order::TileOrder::{Falling, Grouped, Hilbert, RowMajor};

/// The tiles of an output that the running block handles, one after the other: what
/// [`PartitionViewMut::tiles_persistent`] gives.
pub struct TilesPersistent<'v, 'a, T, const R: usize> {
    view: &'v mut PartitionViewMut<'a, T, R>,
    order: TileOrder,
    turn: usize,
}

impl<'a, T: Element, const R: usize> PartitionViewMut<'a, T, R> {
    /// The tiles of this view for a `for` to go through, in a kernel whose blocks share them: a launch has a
    /// block for each multiprocessor of the GPU or thread of the CPU, also where a multiprocessor runs several at once, or as
    /// many as [`Launch::blocks`](crate::Launch::blocks) says, and block `b` of `n` handles the tiles that have the numbers
    /// `b`, `b + n`, `b + 2n` … in the order. What a block computes before the loop is computed once for all of its tiles.
    ///
    /// The loop's tile has the methods of this view. Other outputs, whose tiles must have the same indices, are used
    /// by their own names; in the loop these mean the tile with the loop's index. A kernel has one such loop, at its
    /// top level; `continue` goes on with the block's next tile.
    ///
    /// Orders are [`RowMajor`], [`Grouped`], [`Hilbert`] and [`Falling`], in which a block takes every other of its tiles
    /// from the other end of what all blocks take at that time; [`Launch::first_tiles`](crate::Launch::first_tiles)
    /// handles a prefix.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// #[tile_kernel]
    /// fn matmul<const B: usize>(a: &Tensor<f32, m, k>, b: &Tensor<f32, k, n>, c: &mut Tensor<f32, m, n>) {
    ///     let a = a.partition_view([B, B]);
    ///     let b = b.partition_view([B, B]);
    ///     let mut c = c.partition_view_mut([B, B]);
    ///     for mut tile in c.tiles_persistent(Grouped(8)) {
    ///         let [i, j] = tile.index();
    ///         let mut acc = Tile::zeros([B, B]);
    ///         for p in 0..a.tiles(1) {
    ///             acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    ///         }
    ///         tile.store_masked(acc);
    ///     }
    /// }
    ///
    /// # fn main() -> tile::Result<()> {
    /// let device = Device::reference();
    /// let a = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let b = Tensor::from_slice(&device, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2])?;
    /// let mut c = Tensor::zeros(&device, [2, 2])?;
    /// matmul::<1>(&a, &b, &mut c).blocks(3).launch()?;
    /// assert_eq!(c.to_vec()?, [4.0, 5.0, 10.0, 11.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tiles_persistent(&mut self, order: TileOrder) -> TilesPersistent<'_, 'a, T, R> {
        TilesPersistent { view: self, order, turn: 0 }
    }
}

impl<'a, T: Element, const R: usize> Iterator for TilesPersistent<'_, 'a, T, R> {
    type Item = PartitionViewMut<'a, T, R>;

    fn next(&mut self) -> Option<Self::Item> {
        let PartitionViewMut { data, cut, own } = &*self.view;
        let taken = own.take_turn(self.order, self.turn);
        self.turn += 1;
        taken.then(|| PartitionViewMut { data: *data, cut: cut.clone(), own })
    }
}
