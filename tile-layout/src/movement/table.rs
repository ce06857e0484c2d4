//! Tables of positions: what a gather picks, when the indices are known.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Mode, Modes};
use crate::tuple::{IntTuple, Ints, product};
use crate::view::{Fill, View, Windows, unravel};
use alloc::format;
use alloc::vec::Vec;

/// For each element of a new tensor the position of an old one, in row-major order; `None` reads 0.
///
/// ```
/// use tile_layout::Table;
/// let table = Table::new(&[2, 2], vec![Some(3), None, Some(1), Some(0)])?;
/// assert_eq!(table.get(&[1, 0])?, Some(1));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    shape: Ints,
    positions: Vec<Option<i64>>,
}

/// Room for the positions of a table of these extents.
///
/// # Errors
/// [`ErrorKind::Overflow`] where there is none: axes of views that repeat elements are as long as one likes.
pub(super) fn room(shape: &[i64]) -> Result<Vec<Option<i64>>> {
    let (mut positions, count) = (Vec::new(), product(shape)?);
    match usize::try_from(count).map(|count| positions.try_reserve_exact(count)) {
        Ok(Ok(())) => Ok(positions),
        _ => Err(LayoutError::new(
            ErrorKind::Overflow,
            format!(
                "a table of shape {} has more positions than there is memory for; index first, and repeat elements behind it",
                IntTuple::flat(shape)
            ),
        )),
    }
}

impl Table {
    /// A table of a shape and its positions in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::SizeMismatch`] where there are more or fewer positions than elements.
    ///
    /// ```
    /// assert!(tile_layout::Table::new(&[2], vec![None]).is_err());
    /// ```
    pub fn new(shape: &[i64], positions: Vec<Option<i64>>) -> Result<Table> {
        if product(shape)? != positions.len() as i64 || shape.iter().any(|&extent| extent < 0) {
            return Err(LayoutError::new(
                ErrorKind::SizeMismatch,
                format!("a table of shape {} has not {} positions", IntTuple::flat(shape), positions.len()),
            ));
        }
        Ok(Table { shape: Ints::from_slice(shape), positions })
    }

    /// The extents.
    ///
    /// ```
    /// assert_eq!(tile_layout::Table::new(&[1, 1], vec![None])?.shape(), [1, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The position at an index.
    ///
    /// # Errors
    /// As [`View::get`].
    ///
    /// ```
    /// assert_eq!(tile_layout::Table::new(&[1], vec![Some(4)])?.get(&[0])?, Some(4));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn get(&self, index: &[i64]) -> Result<Option<i64>> {
        crate::view::check_index(&self.shape, index)?;
        Ok(self.at(index))
    }

    /// The position at an index inside the shape.
    pub(crate) fn at(&self, index: &[i64]) -> Option<i64> {
        let place = index.iter().zip(&self.shape).fold(0, |place, (&at, &extent)| place * extent + at);
        self.positions[place as usize]
    }

    pub(crate) fn size(&self) -> usize {
        self.positions.len()
    }

    /// Whether all positions are those of a tensor of `size` elements.
    pub(crate) fn check(&self, size: i64) -> Result<()> {
        match self.positions.iter().flatten().find(|position| !(0..size).contains(*position)) {
            None => Ok(()),
            Some(position) => Err(LayoutError::new(
                ErrorKind::OutOfBounds,
                format!("the table names position {position} of a tensor of {size} elements"),
            )),
        }
    }

    /// This table through a view of its elements.
    pub(crate) fn through(&self, map: &View) -> Result<Table> {
        let pick = |position: Option<i64>| position.and_then(|position| self.positions[position as usize]);
        let mut positions = room(map.shape())?;
        positions.extend(map.offsets().map(pick));
        Table::new(map.shape(), positions)
    }

    /// The view with these positions, where there is one with one stride per axis.
    pub(crate) fn fit(&self) -> Result<Option<View>> {
        let mut windows: Option<Windows> = None;
        for (place, _) in self.positions.iter().enumerate().filter(|(_, position)| position.is_some()) {
            let index = unravel(&self.shape, place as i64);
            let windows = windows.get_or_insert_with(|| index.iter().map(|&at| (at, at + 1)).collect());
            for (window, &at) in windows.iter_mut().zip(&index) {
                *window = (window.0.min(at), window.1.max(at + 1));
            }
        }
        let Some(windows) = windows else { return View::filled(&self.shape, Fill::ZERO).map(Some) };
        let corner: Ints = windows.iter().map(|window| window.0).collect();
        let Some(offset) = self.at(&corner) else { return Ok(None) };
        let mut modes: Vec<Modes> = Vec::new();
        for (axis, &(low, high)) in windows.iter().enumerate() {
            let stride = if high - low < 2 {
                0
            } else {
                let mut next = corner.clone();
                next[axis] += 1;
                let Some(position) = self.at(&next) else { return Ok(None) };
                position - offset
            };
            modes.push(Modes::from_slice(&[Mode::new(high - low, stride)]));
        }
        let view = View::assemble(
            self.shape.clone(),
            windows,
            modes.iter().map(Modes::as_slice),
            offset,
            Fill::ZERO,
        )?;
        let same = view.offsets().eq(self.positions.iter().copied());
        Ok(same.then_some(view))
    }
}
