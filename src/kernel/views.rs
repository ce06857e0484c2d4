//! Kernel arguments in memory, and the partition views that cut them into tiles.
//!
//! A tensor can be read at any tile. A mutable tensor can be read and written only at the tile that the
//! running block owns, so two blocks can't collide. Elements outside the tensor read as the pad value and
//! are never written.

use super::{Element, Number, Tile};
use std::cell::Cell;
use tile_ir::Array;
use tile_ir::array::Elements;
use tile_layout::{Partition, Window, linear_index, multi_index};
use tile_runtime::reference::Arguments;

/// A `&Tensor` argument inside a kernel.
#[derive(Clone, Copy)]
pub struct TensorView<'a, T, const R: usize> {
    data: &'a [T],
    extents: [usize; R],
}

/// A `&mut Tensor` argument inside a kernel.
pub struct TensorViewMut<'a, T, const R: usize> {
    data: &'a [Cell<T>],
    extents: [usize; R],
    block: [usize; R],
}

/// A tensor cut into tiles; the tiles at the end of an axis may stick out. Any tile can be loaded.
#[derive(Clone)]
pub struct PartitionView<'a, T, const R: usize> {
    data: &'a [T],
    cut: Cut<R>,
}

/// A mutable tensor cut into tiles, one per block of the grid. A block sees its own tile only.
pub struct PartitionViewMut<'a, T, const R: usize> {
    data: &'a [Cell<T>],
    cut: Cut<R>,
    block: [usize; R],
}

impl<'a, T: Element, const R: usize> TensorView<'a, T, R> {
    /// The argument at `position`; called by the code that `#[tile_kernel]` writes.
    ///
    /// # Panics
    /// If the argument's rank isn't `R`; a launch checks it before.
    pub fn of(arguments: &Arguments<'a>, position: usize) -> Self {
        let (data, extents) = arguments.tensor::<T>(position);
        TensorView {
            data,
            extents: extents.try_into().expect("verified: a launch binds tensors of declared rank"),
        }
    }

    /// The extent of an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents[axis]
    }

    /// The tensor cut into tiles of these extents.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    pub fn partition_view(&self, tile: [usize; R]) -> PartitionView<'a, T, R> {
        PartitionView { data: self.data, cut: Cut::new(self.extents, tile) }
    }
}

impl<'a, T: Element, const R: usize> TensorViewMut<'a, T, R> {
    /// The argument at `position`; called by the code that `#[tile_kernel]` writes.
    ///
    /// # Panics
    /// If the argument's rank isn't `R`; a launch checks it before.
    pub fn of(arguments: &Arguments<'a>, position: usize) -> Self {
        let (data, extents) = arguments.tensor_mut::<T>(position);
        let rank = "verified: a launch binds tensors of declared rank";
        let block =
            arguments.block_index().try_into().expect("verified: the grid has the rank of every output");
        TensorViewMut { data, extents: extents.try_into().expect(rank), block }
    }

    /// The extent of an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents[axis]
    }

    /// The tensor cut into tiles of these extents, one per block: this declares the kernel's grid.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    pub fn partition_view_mut(&mut self, tile: [usize; R]) -> PartitionViewMut<'a, T, R> {
        PartitionViewMut { data: self.data, cut: Cut::new(self.extents, tile), block: self.block }
    }
}

impl<T: Element, const R: usize> PartitionView<'_, T, R> {
    /// The number of tiles along an axis; a tile that sticks out counts.
    pub fn tiles(&self, axis: usize) -> usize {
        self.cut.partition.index_space()[axis]
    }

    /// The extent of the tensor along an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.cut.partition.extents()[axis]
    }

    /// The tile at `index`, with `pad` in place of elements outside the tensor.
    pub fn load_masked_or(&self, pad: T, index: [usize; R]) -> Tile<T, R> {
        self.cut.load(index, pad, |position| self.data[position])
    }
}

impl<T: Number, const R: usize> PartitionView<'_, T, R> {
    /// The tile at `index`, with zeros in place of elements outside the tensor.
    pub fn load_masked(&self, index: [usize; R]) -> Tile<T, R> {
        self.load_masked_or(T::from_int(0), index)
    }
}

impl<T: Element, const R: usize> PartitionViewMut<'_, T, R> {
    /// The index of the tile that this block owns.
    pub fn index(&self) -> [usize; R] {
        self.block
    }

    /// The number of tiles along an axis; a tile that sticks out counts.
    pub fn tiles(&self, axis: usize) -> usize {
        self.cut.partition.index_space()[axis]
    }

    /// The extent of the tensor along an axis, in elements.
    pub fn extent(&self, axis: usize) -> usize {
        self.cut.partition.extents()[axis]
    }

    /// The block's tile, with `pad` in place of elements outside the tensor.
    pub fn load_masked_or(&self, pad: T) -> Tile<T, R> {
        self.cut.load(self.block, pad, |position| self.data[position].get())
    }

    /// Writes the block's tile, where it lies inside the tensor.
    ///
    /// # Panics
    /// If the tile doesn't have the view's tile extents; in a kernel that is a compile error.
    pub fn store_masked(&mut self, tile: Tile<T, R>) {
        assert!(
            tile.shape() == self.cut.tile,
            "a tile of shape {:?} is stored to a view of tiles {:?}",
            tile.shape(),
            self.cut.tile
        );
        let values = tile.to_vec();
        self.cut.for_each_run(self.block, |in_tile, in_tensor, length| {
            let target = &self.data[in_tensor..in_tensor + length];
            for (cell, &value) in target.iter().zip(&values[in_tile..]) {
                cell.set(value);
            }
        });
    }
}

impl<T: Number, const R: usize> PartitionViewMut<'_, T, R> {
    /// The block's tile, with zeros in place of elements outside the tensor.
    pub fn load_masked(&self) -> Tile<T, R> {
        self.load_masked_or(T::from_int(0))
    }
}

/// How a tensor is cut.
#[derive(Clone)]
struct Cut<const R: usize> {
    partition: Partition,
    tile: [usize; R],
}

impl<const R: usize> Cut<R> {
    fn new(extents: [usize; R], tile: [usize; R]) -> Self {
        let Some(partition) = Partition::new(&extents, &tile) else {
            panic!("a partition view needs positive tile extents, not {tile:?}")
        };
        Cut { partition, tile }
    }

    /// Calls `run` with (position in the tile, position in the tensor, length) for every contiguous run of
    /// elements of a tile that lie inside the tensor.
    fn for_each_run(&self, index: [usize; R], mut run: impl FnMut(usize, usize, usize)) {
        let Some(Window { start, valid }) = self.partition.window(&index) else { return };
        let (rows, length) = match valid.split_last() {
            None => (1, 1),
            Some((&length, rows)) => (rows.iter().product(), length),
        };
        for row in 0..rows {
            let mut offset = multi_index(row, &valid[..R.saturating_sub(1)]);
            offset.resize(R, 0);
            let in_tensor: Vec<usize> =
                start.iter().zip(&offset).map(|(start, offset)| start + offset).collect();
            run(
                linear_index(&offset, &self.tile),
                linear_index(&in_tensor, self.partition.extents()),
                length,
            );
        }
    }

    fn load<T: Element>(&self, index: [usize; R], pad: T, element: impl Fn(usize) -> T) -> Tile<T, R> {
        let count = self.tile.iter().product();
        let elements = if T::DTYPE.is_float() {
            let mut values = vec![pad.to_float(); count];
            self.for_each_run(index, |in_tile, in_tensor, length| {
                for i in 0..length {
                    values[in_tile + i] = element(in_tensor + i).to_float();
                }
            });
            Elements::Float(values)
        } else {
            let mut values = vec![pad.to_int(); count];
            self.for_each_run(index, |in_tile, in_tensor, length| {
                for i in 0..length {
                    values[in_tile + i] = element(in_tensor + i).to_int();
                }
            });
            Elements::Int(values)
        };
        Tile::hold(Array::new(T::DTYPE, self.tile.to_vec(), elements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(data: &[i32], extents: [usize; 2]) -> TensorView<'_, i32, 2> {
        TensorView { data, extents }
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
        let mut tensor = TensorViewMut { data: &data, extents: [3, 5], block: [1, 1] };
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
        let mut tensor = TensorViewMut { data: &data, extents: [3, 5], block: [0, 0] };
        tensor.partition_view_mut([2, 4]).store_masked(Tile::zeros([2, 1]));
    }
}
