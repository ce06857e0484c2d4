//! Coordinates as tensors: one grid of several axes.

use super::Movement;
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::format;
use alloc::vec::Vec;

/// Vectors and scalars spread over a common grid: tensor `k`, flattened, varies along axis `k` only. With `xy` the
/// first two axes are exchanged, as for horizontal and vertical coordinates. A single tensor stays as it is.
///
/// # Errors
/// [`ErrorKind::InvalidIndex`] for another `indexing` than `ij` and `xy`.
///
/// ```
/// use tile_layout::{View, meshgrid};
/// let grids = meshgrid(&[View::row_major(&[2])?, View::row_major(&[3])?], "ij")?;
/// assert_eq!((grids[0].strides(), grids[1].strides()), (Some(vec![1, 0]), Some(vec![0, 1])));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub fn meshgrid<M: Movement + Clone>(tensors: &[M], indexing: &str) -> Result<Vec<M>> {
    if indexing != "ij" && indexing != "xy" {
        return Err(LayoutError::new(
            ErrorKind::InvalidIndex,
            format!("meshgrid indexes by `ij` or by `xy`, not by `{indexing}`"),
        ));
    }
    if let [single] = tensors {
        return Ok(alloc::vec![single.clone()]);
    }
    let swap = indexing == "xy" && tensors.len() > 1;
    let place = |number: usize| if swap && number < 2 { 1 - number } else { number };
    let mut grid = alloc::vec![1; tensors.len()];
    for (number, tensor) in tensors.iter().enumerate() {
        grid[place(number)] = crate::tuple::product(tensor.shape())?;
    }
    let spread = |(number, tensor): (usize, &M)| {
        let mut shape = alloc::vec![1; tensors.len()];
        shape[place(number)] = grid[place(number)];
        tensor.reshape(shape)?.expand(grid.clone())
    };
    tensors.iter().enumerate().map(spread).collect()
}
