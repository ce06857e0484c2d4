//! Kernel arguments in memory, and the partition views that cut them into tiles.
//!
//! A tensor can be read at any tile. A mutable tensor can be read and written only at the tile that the
//! running block owns, so two blocks can't collide. Elements outside the tensor read as the pad value and
//! are never written.
//!
//! What a view is of lives in the block's arena, so that views are `Copy` as a kernel's values are.

use super::arena::{self, Handle};
use super::cut::Cut;
use super::view_movement::Seen;
use super::view_tile::ViewTileMut;
use super::{Element, Tile};
#[cfg(test)]
use std::cell::Cell;
use std::rc::Rc;
#[cfg(test)]
use tile_ir::view::GivenTensor;
use tile_runtime::reference::{Arguments, OwnTile, ReadElements, WrittenElements};

/// A `&Tensor` argument inside a kernel, or a view of one: `permute`, `flip`, `pad` and the other movements give
/// views of views, and move no element. A view is a value that is `Copy`.
///
/// ```
/// use tile::prelude::*;
///
/// /// The differences of neighbours, from the right, of every row of the transpose.
/// #[tile_kernel]
/// fn differences<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, n, m>) {
///     let x = x.t().flip([1]);
///     let before = x.shift(1, 1).partition_view([1, B]);
///     let x = x.partition_view([1, B]);
///     let mut y = y.partition_view_mut([1, B]);
///     y.store_masked(x.load_masked(y.index()) - before.load_masked(y.index()));
/// }
///
/// # fn main() -> tile::Result<()> {
/// let device = Device::reference();
/// let x = Tensor::from_slice(&device, &[1.0, 2.0, 4.0, 7.0, 9.0, 9.0], [3, 2])?;
/// let mut y = Tensor::zeros(&device, [2, 3])?;
/// differences::<4>(&x, &mut y).launch()?;
/// // The columns are 1 4 9 and 2 7 9.
/// assert_eq!(y.to_vec()?, [9.0, -5.0, -3.0, 9.0, -2.0, -5.0]);
/// # Ok(())
/// # }
/// ```
pub struct TensorView<'a, T, const R: usize> {
    data: ReadElements<'a, T>,
    seen: Handle<Seen>,
}

/// A `&mut Tensor` argument inside a kernel, or a view of one.
pub struct TensorViewMut<'a, T, const R: usize> {
    data: WrittenElements<'a, T>,
    seen: Handle<Seen>,
    /// The running block's tile; its rank is that of the view that is cut.
    own: &'a OwnTile,
}

/// A tensor cut into tiles; the tiles at the end of an axis may stick out. Any tile can be loaded.
pub struct PartitionView<'a, T, const R: usize> {
    data: ReadElements<'a, T>,
    cut: Handle<Cut<R>>,
}

macro_rules! values {
    ($($view:ident)*) => { $(
        impl<T: Copy, const R: usize> Clone for $view<'_, T, R> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T: Copy, const R: usize> Copy for $view<'_, T, R> {}
    )* };
}

values!(TensorView PartitionView);

/// A mutable tensor cut into tiles, one per block of the grid, or shared by a fixed number of blocks, see
/// [`PartitionViewMut::tiles_persistent`]. A block sees its own tile only.
pub struct PartitionViewMut<'a, T, const R: usize> {
    pub(super) data: WrittenElements<'a, T>,
    pub(super) cut: Rc<Cut<R>>,
    pub(super) own: &'a OwnTile,
}

impl<'a, T: Element, const R: usize> TensorView<'a, T, R> {
    /// The argument at `position`; called by the code that `#[tile_kernel]` writes.
    ///
    /// # Panics
    /// If the argument's rank isn't `R`; a launch checks it before.
    pub fn of(arguments: &Arguments<'a>, position: usize) -> Self {
        let (data, given) = arguments.tensor::<T>(position);
        TensorView { data, seen: arena::keep(Seen::of::<R>(&given, T::DTYPE, false)) }
    }

    /// The argument at `position`, if it is given; called by the code that `#[tile_kernel]` writes.
    ///
    /// # Panics
    /// As [`TensorView::of`].
    pub fn of_optional(arguments: &Arguments<'a>, position: usize) -> Option<Self> {
        arguments.is_given(position).then(|| TensorView::of(arguments, position))
    }

    /// A dense tensor of these elements.
    #[cfg(test)]
    pub(super) fn over(data: &'a [T], extents: [usize; R]) -> Self {
        let seen = Seen::of::<R>(&GivenTensor::dense(&extents), T::DTYPE, false);
        TensorView { data: ReadElements::of(data), seen: arena::keep(seen) }
    }

    pub(super) fn seen(&self) -> Rc<Seen> {
        arena::read(self.seen)
    }

    pub(super) fn with<const S: usize>(&self, seen: Seen) -> TensorView<'a, T, S> {
        TensorView { data: self.data, seen: arena::keep(seen) }
    }

    pub(super) fn element(&self, position: usize) -> T {
        self.data.at(position)
    }

    /// The extent of an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.seen().extent(axis)
    }

    /// The tensor cut into tiles of these extents.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    pub fn partition_view(&self, tile: [usize; R]) -> PartitionView<'a, T, R> {
        PartitionView { data: self.data, cut: arena::keep(Cut::new(&self.seen(), tile, tile)) }
    }

    /// The tensor cut into tiles that begin `steps` apart: overlapping where a step is smaller than its tile,
    /// with gaps where it is larger. Tiles that begin inside count.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// /// Sums of 3 neighbours.
    /// #[tile_kernel]
    /// fn sums(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    ///     let x = x.strided_view([4], [1]);
    ///     let mut y = y.partition_view_mut([1]);
    ///     let window = x.load_masked(y.index());
    ///     y.store_masked(select(Tile::<i32, 1>::iota([4], 0).lt(3), window, 0.0).sum(0));
    /// }
    ///
    /// # fn main() -> tile::Result<()> {
    /// let device = Device::reference();
    /// let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0], [4])?;
    /// let mut y = Tensor::zeros(&device, [4])?;
    /// sums(&x, &mut y).launch()?;
    /// assert_eq!(y.to_vec()?, [6.0, 9.0, 7.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If an extent or a step is zero; in a kernel that is a compile error.
    pub fn strided_view(&self, tile: [usize; R], steps: [usize; R]) -> PartitionView<'a, T, R> {
        PartitionView { data: self.data, cut: arena::keep(Cut::new(&self.seen(), tile, steps)) }
    }
}

impl<'a, T: Element, const R: usize> TensorViewMut<'a, T, R> {
    /// The argument at `position`; called by the code that `#[tile_kernel]` writes.
    ///
    /// # Panics
    /// If the argument's rank isn't `R`; a launch checks it before.
    pub fn of(arguments: &Arguments<'a>, position: usize) -> Self {
        let (data, given) = arguments.tensor_mut::<T>(position);
        TensorViewMut {
            data,
            seen: arena::keep(Seen::of::<R>(&given, T::DTYPE, true)),
            own: arguments.own_tile(),
        }
    }

    /// The argument at `position`, if it is given; called by the code that `#[tile_kernel]` writes.
    ///
    /// # Panics
    /// As [`TensorViewMut::of`].
    pub fn of_optional(arguments: &Arguments<'a>, position: usize) -> Option<Self> {
        arguments.is_given(position).then(|| TensorViewMut::of(arguments, position))
    }

    #[cfg(test)]
    fn over(data: &'a [Cell<T>], extents: [usize; R], own: &'a OwnTile) -> Self {
        let seen = Seen::of::<R>(&GivenTensor::dense(&extents), T::DTYPE, true);
        TensorViewMut { data: WrittenElements::of(data), seen: arena::keep(seen), own }
    }

    pub(super) fn elements(&self) -> WrittenElements<'a, T> {
        self.data
    }

    pub(super) fn seen(&self) -> Rc<Seen> {
        arena::read(self.seen)
    }

    pub(super) fn with<const S: usize>(&self, seen: Seen) -> TensorViewMut<'a, T, S> {
        TensorViewMut { data: self.data, seen: arena::keep(seen), own: self.own }
    }

    /// The extent of an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.seen().extent(axis)
    }

    /// The tensor cut into tiles of these extents, one per block: this declares the kernel's grid.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    pub fn partition_view_mut(&mut self, tile: [usize; R]) -> PartitionViewMut<'a, T, R> {
        self.cut(tile, tile)
    }

    /// [`TensorViewMut::partition_view_mut`] with tiles that begin `steps` apart; what lies between them isn't
    /// written.
    ///
    /// # Panics
    /// If an extent or a step is zero, or a step is smaller than its tile; in a kernel that is a compile error.
    pub fn strided_view_mut(&mut self, tile: [usize; R], steps: [usize; R]) -> PartitionViewMut<'a, T, R> {
        let apart = tile.iter().zip(&steps).all(|(tile, step)| step >= tile);
        assert!(apart, "tiles {tile:?}, {steps:?} apart, overlap: two blocks would write one element");
        self.cut(tile, steps)
    }

    fn cut(&self, tile: [usize; R], steps: [usize; R]) -> PartitionViewMut<'a, T, R> {
        PartitionViewMut { data: self.data, cut: Rc::new(Cut::new(&self.seen(), tile, steps)), own: self.own }
    }
}

impl<T: Element, const R: usize> PartitionView<'_, T, R> {
    pub(super) fn cut(&self) -> Rc<Cut<R>> {
        arena::read(self.cut)
    }

    /// The number of tiles along an axis; a tile that sticks out counts.
    pub fn tiles(&self, axis: usize) -> usize {
        self.cut().tiles(axis)
    }

    /// The extent of the tensor along an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.cut().extents[axis]
    }

    /// The tile at `index`, with zeros, or `false`, in place of elements outside the tensor.
    pub fn load_masked(&self, index: [usize; R]) -> Tile<T, R> {
        self.load_masked_or(T::default(), index)
    }

    /// The tile at `index`, with `pad` in place of elements outside the tensor.
    pub fn load_masked_or(&self, pad: T, index: [usize; R]) -> Tile<T, R> {
        self.cut().load(index, pad, |position| self.data.at(position))
    }

    /// Prefetches the tile at `index` for a later load: into the cache on CPUs, into L2 on NVIDIA GPUs; other targets do
    /// nothing. Nothing is read, any index is defined, and no result changes.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// #[tile_kernel]
    /// fn row_sums<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    ///     let x = x.partition_view([1, B]);
    ///     let mut y = y.partition_view_mut([1, 1]);
    ///     let [i, _] = y.index();
    ///     let mut sum = Tile::zeros([1, 1]);
    ///     for j in 0..x.tiles(1) {
    ///         x.prefetch([i, j + 2]);
    ///         sum += x.load_masked([i, j]).sum(1);
    ///     }
    ///     y.store(sum);
    /// }
    ///
    /// # fn main() -> tile::Result<()> {
    /// let device = Device::reference();
    /// let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let mut y = Tensor::zeros(&device, [2, 1])?;
    /// row_sums::<2>(&x, &mut y).launch()?;
    /// assert_eq!(y.to_vec()?, [6.0, 15.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefetch(&self, index: [usize; R]) {
        let _ = index;
    }

    /// A hint: a `for` loop that reads tiles of this view, at indices computed from its counter, prefetches each, as
    /// [`PartitionView::prefetch`] does, `turns` iterations ahead, 1 to 64. A loop that is left by `break` or `return`
    /// doesn't, and loads under an `if` are left alone. In a kernel, another number is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// #[tile_kernel]
    /// fn row_sums<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    ///     let x = x.partition_view([1, B]).latency(2).bulk_copy(true);
    ///     let mut y = y.partition_view_mut([1, 1]);
    ///     let [i, _] = y.index();
    ///     let mut sum = Tile::zeros([1, 1]);
    ///     for j in 0..x.tiles(1) {
    ///         sum += x.load_masked([i, j]).sum(1);
    ///     }
    ///     y.store(sum);
    /// }
    ///
    /// assert!(row_sums::ir().to_string().contains("latency 2 bulk_copy true"));
    /// ```
    #[must_use]
    pub fn latency(self, turns: usize) -> Self {
        let _ = turns;
        self
    }

    /// A hint: whether prefetches of this view's tiles are copies of whole rows, where the target has such
    /// (`sm_90a`, `sm_100a` and `sm_120f`, for rows whose address and size are multiples of 16 bytes), or by cache line, as without the hint.
    #[must_use]
    pub fn bulk_copy(self, whole_rows: bool) -> Self {
        let _ = whole_rows;
        self
    }

    /// The tile at `index`, all of whose elements exist. That is proved when the kernel is compiled, or checked
    /// when it is launched; an index that can't be bounded, such as a scalar argument, is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// #[tile_kernel]
    /// fn twice<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    ///     let x = x.partition_view([B]);
    ///     let mut y = y.partition_view_mut([B]);
    ///     y.store(x.load(y.index()) * 2.0);
    /// }
    ///
    /// # fn main() -> tile::Result<()> {
    /// let device = Device::reference();
    /// let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [6])?;
    /// let mut y = Tensor::zeros(&device, [6])?;
    /// twice::<2>(&x, &mut y).launch()?;
    /// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    /// let error = twice::<4>(&x, &mut y).launch().unwrap_err();
    /// let reason = "`load` of `x`: tile 1 of axis 0 ends at element 8, but the axis has 6 elements (n)";
    /// assert!(error.to_string().contains(reason), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If an element doesn't exist, which a launch has excluded.
    pub fn load(&self, index: [usize; R]) -> Tile<T, R> {
        self.cut().assert_whole("load", "load_masked", index);
        self.load_masked_or(T::default(), index)
    }

    /// The tile at `index`, which the kernel's author knows to lie inside the tensor.
    ///
    /// # Safety
    /// Every element of the tile exists.
    ///
    /// # Panics
    /// On the reference device, if one doesn't.
    pub unsafe fn load_unchecked(&self, index: [usize; R]) -> Tile<T, R> {
        self.cut().assert_whole("load_unchecked", "load_masked", index);
        self.load_masked_or(T::default(), index)
    }
}

impl<'a, T: Element, const R: usize> PartitionViewMut<'a, T, R> {
    /// The index of the tile that this block owns.
    ///
    /// # Panics
    /// Outside of the loop over tiles of a persistent kernel, which in a kernel is a compile error.
    pub fn index(&self) -> [usize; R] {
        self.own.index().try_into().expect("verified: the grid has the rank of every output's view")
    }

    /// Prefetches the block's tile, as [`PartitionView::prefetch`] does.
    pub fn prefetch(&self) {}

    /// The number of tiles along an axis; a tile that sticks out counts.
    pub fn tiles(&self, axis: usize) -> usize {
        self.cut.tiles(axis)
    }

    /// The extent of the tensor along an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.cut.extents[axis]
    }

    /// The block's tile, all of whose elements exist: a launch whose tiles don't fit is refused.
    ///
    /// # Panics
    /// If an element doesn't exist, which a launch has excluded.
    pub fn load(&self) -> Tile<T, R> {
        self.tile().load()
    }

    /// Writes the block's tile, all of whose elements exist: a launch whose tiles don't fit is refused.
    ///
    /// # Panics
    /// If the tile doesn't have the view's tile extents; in a kernel that is a compile error. If an element
    /// doesn't exist, which a launch has excluded.
    pub fn store(&mut self, tile: Tile<T, R>) {
        self.tile().store(tile);
    }

    /// The block's tile, with zeros, or `false`, in place of elements outside the tensor.
    pub fn load_masked(&self) -> Tile<T, R> {
        self.tile().load_masked()
    }

    /// The block's tile, with `pad` in place of elements outside the tensor.
    pub fn load_masked_or(&self, pad: T) -> Tile<T, R> {
        self.tile().load_masked_or(pad)
    }

    /// Writes the block's tile, where it lies inside the tensor.
    ///
    /// # Panics
    /// If the tile doesn't have the view's tile extents; in a kernel that is a compile error.
    pub fn store_masked(&mut self, tile: Tile<T, R>) {
        self.tile().store_masked(tile);
    }

    fn tile(&self) -> ViewTileMut<'a, T, R> {
        ViewTileMut::new(self.data, self.cut.clone(), self.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(data: &[i32], extents: [usize; 2]) -> TensorView<'_, i32, 2> {
        TensorView::over(data, extents)
    }

    #[test]
    fn tiles_at_the_edge_are_padded() {
        let data: Vec<i32> = (0..15).collect();
        let tiles = view(&data, [3, 5]).partition_view([2, 4]);
        assert_eq!((tiles.tiles(0), tiles.tiles(1), tiles.extent(1)), (2, 2, 5));
        assert_eq!(tiles.load_masked([0, 0]).to_vec(), [0, 1, 2, 3, 5, 6, 7, 8]);
        assert_eq!(tiles.load_masked_or(-1, [1, 1]).to_vec(), [14, -1, -1, -1, -1, -1, -1, -1]);
        assert_eq!(tiles.load_masked_or(-1, [2, 0]).to_vec(), [-1; 8]);
    }

    #[test]
    fn a_block_writes_its_own_tile_inside_the_tensor() {
        let data = vec![Cell::new(0); 15];
        let own = OwnTile::at(&[1, 1]);
        let mut tensor = TensorViewMut::over(&data, [3, 5], &own);
        let mut tiles = tensor.partition_view_mut([2, 4]);
        tiles.store_masked(Tile::full([2, 4], 7));
        let expected: Vec<i32> = (0..15).map(|i| if i == 14 { 7 } else { 0 }).collect();
        assert_eq!(data.iter().map(Cell::get).collect::<Vec<_>>(), expected);
        assert_eq!(tiles.index(), [1, 1]);
        assert_eq!(tiles.load_masked_or(1).to_vec(), [7, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    #[should_panic(expected = "a tile of shape [2, 1] is stored to a view of tiles [2, 4]")]
    fn stored_tiles_have_the_shape_of_the_view() {
        let data = vec![Cell::new(0); 15];
        let own = OwnTile::at(&[0, 0]);
        let mut tensor = TensorViewMut::<_, 2>::over(&data, [3, 5], &own);
        tensor.partition_view_mut([2, 4]).store_masked(Tile::zeros([2, 1]));
    }
}
