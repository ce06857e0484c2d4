//! Where the running block is in its grid.

use super::arena;
use std::cell::RefCell;
use tile_runtime::reference::Arguments;

/// The running block's index, and the number of blocks along each axis.
#[derive(Clone, Default)]
struct Place {
    block: Vec<usize>,
    grid: Vec<usize>,
}

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// Runs one block of a kernel, which knows its place; every tile that it makes is gone afterwards.
///
/// `#[tile_kernel]` calls this; there is no other reason to.
pub fn in_block<Output>(arguments: &Arguments<'_>, body: impl FnOnce() -> Output) -> Output {
    let place = Place { block: arguments.block_index().to_vec(), grid: arguments.grid().to_vec() };
    let _end = Restore(PLACE.replace(Some(place)));
    arena::in_block(body)
}

/// Puts the place of the block that launched this one back, also when a kernel panics.
struct Restore(Option<Place>);

impl Drop for Restore {
    fn drop(&mut self) {
        PLACE.set(self.0.take());
    }
}

fn along(axis: usize, numbers: impl Fn(&Place) -> &[usize]) -> usize {
    PLACE.with_borrow(|place| {
        let place = place.as_ref().expect("a block's place in the grid is known in a kernel only");
        let numbers = numbers(place);
        assert!(axis < numbers.len(), "axis {axis} is out of range: the grid has rank {}", numbers.len());
        numbers[axis]
    })
}

/// The running block's index along an axis of the grid: of `#[tile_kernel(grid = […])]`, or of the outputs' tiles.
///
/// ```
/// use tile::prelude::*;
///
/// /// Where each block is, and of how many.
/// #[tile_kernel]
/// fn places(y: &mut Tensor<i64, n>) {
///     let mut y = y.partition_view_mut([2]);
///     y.store_masked(Tile::full([2], 10 * block_id(0) as i64 + block_count(0) as i64));
/// }
///
/// # fn main() -> tile::Result<()> {
/// let mut y = Tensor::zeros(&Device::reference(), [5])?;
/// places(&mut y).launch()?;
/// assert_eq!(y.to_vec()?, [3, 3, 13, 13, 23]);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// If the grid has no such axis, which in a kernel is a compile error, and outside of a kernel.
pub fn block_id(axis: usize) -> usize {
    along(axis, |place| &place.block)
}

/// The number of blocks along an axis of the grid; see [`block_id`].
///
/// # Panics
/// As [`block_id`].
pub fn block_count(axis: usize) -> usize {
    along(axis, |place| &place.grid)
}
