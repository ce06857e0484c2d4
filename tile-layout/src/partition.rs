//! Partition views: a tensor cut into equal tiles, the last of which may stick out.
//!
//! Tile `i` along an axis covers `i*step .. i*step + tile`; the index space has `⌈extent / step⌉` tiles. Without
//! steps of their own, tiles stand side by side (CUDA tile C++, `partition_view`; CUDA Tile IR, `strided_view`).

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::view::View;
use alloc::format;
use alloc::vec::Vec;

/// Extents of a tensor and of the tiles that cut it.
///
/// ```
/// use tile_layout::Partition;
/// let p = Partition::new(&[10, 8], &[4, 8]).unwrap();
/// assert_eq!(p.index_space(), [3, 1]);
/// assert_eq!(p.window(&[2, 0]).unwrap().valid, [2, 8]);
/// assert!(p.window(&[3, 0]).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    extents: Vec<usize>,
    tile: Vec<usize>,
    steps: Vec<usize>,
}

/// Where one tile lies in its tensor.
///
/// ```
/// use tile_layout::{Partition, Window};
/// let last = Partition::new(&[10], &[4]).and_then(|partition| partition.window(&[2]));
/// assert_eq!(last, Some(Window { start: vec![8], valid: vec![2] }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The tensor index of the tile's first element.
    pub start: Vec<usize>,
    /// How many elements along each axis lie inside the tensor; at least 1.
    pub valid: Vec<usize>,
}

impl Partition {
    /// Tiles side by side; `None` where ranks differ or a tile extent is zero.
    ///
    /// ```
    /// use tile_layout::Partition;
    /// assert!(Partition::new(&[10], &[4]).is_some() && Partition::new(&[10], &[0]).is_none());
    /// ```
    pub fn new(extents: &[usize], tile: &[usize]) -> Option<Partition> {
        Partition::strided(extents, tile, tile)
    }

    /// Tiles `steps` apart, which overlap or leave gaps; `None` where ranks differ or a tile extent or a step is zero.
    ///
    /// ```
    /// use tile_layout::Partition;
    /// let overlapping = Partition::strided(&[10], &[4], &[2]).unwrap();
    /// assert_eq!(overlapping.index_space(), [5]);
    /// assert_eq!(overlapping.window(&[4]).unwrap().valid, [2]);
    /// ```
    pub fn strided(extents: &[usize], tile: &[usize], steps: &[usize]) -> Option<Partition> {
        let ranks = extents.len() == tile.len() && tile.len() == steps.len();
        let fits = ranks && tile.iter().chain(steps).all(|&extent| extent > 0);
        fits.then(|| Partition { extents: extents.to_vec(), tile: tile.to_vec(), steps: steps.to_vec() })
    }

    /// Extents of the tensor.
    ///
    /// ```
    /// assert_eq!(tile_layout::Partition::new(&[10], &[4]).unwrap().extents(), [10]);
    /// ```
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Extents of a tile.
    ///
    /// ```
    /// assert_eq!(tile_layout::Partition::new(&[10], &[4]).unwrap().tile(), [4]);
    /// ```
    pub fn tile(&self) -> &[usize] {
        &self.tile
    }

    /// The number of tiles along each axis.
    ///
    /// ```
    /// assert_eq!(tile_layout::Partition::new(&[10, 0], &[4, 4]).unwrap().index_space(), [3, 0]);
    /// ```
    pub fn index_space(&self) -> Vec<usize> {
        self.extents.iter().zip(&self.steps).map(|(&extent, &step)| extent.div_ceil(step)).collect()
    }

    /// Where tile `index` lies; `None` outside the index space.
    ///
    /// ```
    /// let partition = tile_layout::Partition::new(&[10], &[4]).unwrap();
    /// assert_eq!(partition.window(&[1]).unwrap().start, [4]);
    /// assert_eq!(partition.window(&[3]), None);
    /// ```
    pub fn window(&self, index: &[usize]) -> Option<Window> {
        let axes = index.iter().zip(&self.steps).zip(&self.tile).zip(&self.extents);
        let (start, valid) = axes
            .map(|(((&i, &step), &tile), &extent)| {
                let start = i.checked_mul(step).filter(|&start| start < extent)?;
                Some((start, tile.min(extent - start)))
            })
            .collect::<Option<(Vec<_>, Vec<_>)>>()?;
        (index.len() == self.tile.len()).then_some(Window { start, valid })
    }
}

/// A view cut into tiles, each of which is a view.
///
/// ```
/// use tile_layout::{PartitionView, View};
/// let tiles = PartitionView::new(View::row_major(&[10, 8])?, &[4, 8])?;
/// assert_eq!(tiles.index_space(), [3, 1]);
/// assert_eq!(tiles.tile(&[2, 0])?.to_string(), "(2,8):(8,1) + 64 within (4,8) at (0,0)");
/// assert!(tiles.tile(&[3, 0]).is_err());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    view: View,
    partition: Partition,
    sizes: Vec<i64>,
}

impl PartitionView {
    /// `view` in tiles side by side.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] unless there is one size per axis, [`ErrorKind::InvalidExtent`] for a size below 1.
    ///
    /// ```
    /// use tile_layout::{PartitionView, View};
    /// assert!(PartitionView::new(View::row_major(&[10, 8])?, &[4]).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(view: View, sizes: &[i64]) -> Result<PartitionView> {
        PartitionView::strided(view, sizes, sizes)
    }

    /// `view` in tiles `steps` apart.
    ///
    /// # Errors
    /// As [`PartitionView::new`].
    ///
    /// ```
    /// use tile_layout::{PartitionView, View};
    /// let windows = PartitionView::strided(View::row_major(&[8])?, &[4], &[2])?;
    /// assert_eq!((windows.index_space(), windows.tile(&[1])?.offset()), (vec![4], 2));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn strided(view: View, sizes: &[i64], steps: &[i64]) -> Result<PartitionView> {
        let partition = match (counts(view.shape()), counts(sizes), counts(steps)) {
            (Some(extents), Some(tile), Some(apart)) => Partition::strided(&extents, &tile, &apart),
            _ => None,
        };
        let refused = || {
            let kind = if sizes.len() == view.rank() && steps.len() == view.rank() {
                ErrorKind::InvalidExtent
            } else {
                ErrorKind::Rank
            };
            LayoutError::new(
                kind,
                format!(
                    "tiles of {sizes:?}, {steps:?} apart, do not cut {view}: one size of 1 or more per axis"
                ),
            )
        };
        Ok(PartitionView { partition: partition.ok_or_else(refused)?, view, sizes: sizes.to_vec() })
    }

    /// `view` in tiles that may be written: no two elements share memory, nor two scalars of vectors.
    ///
    /// # Errors
    /// As [`PartitionView::new`]; [`ErrorKind::NotInjective`] where two elements share an offset;
    /// [`ErrorKind::Overflow`] where there are more scalars than 2^62.
    ///
    /// ```
    /// use tile_layout::{ErrorKind, Movement, PartitionView, View};
    /// let repeated = View::row_major(&[1, 4])?.expand([4, 4])?;
    /// let error = PartitionView::writable(repeated, &[2, 2]).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotInjective);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn writable(view: View, sizes: &[i64]) -> Result<PartitionView> {
        if !Layout::concat(&[view.layout().clone(), view.element()])?.is_injective() {
            return Err(LayoutError::new(
                ErrorKind::NotInjective,
                format!("{view} has elements that share memory; writing to its tiles would be a race"),
            ));
        }
        PartitionView::new(view, sizes)
    }

    /// The view that is cut.
    ///
    /// ```
    /// use tile_layout::{PartitionView, View};
    /// assert_eq!(PartitionView::new(View::row_major(&[8])?, &[4])?.view().shape(), [8]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The number of tiles along each axis.
    ///
    /// ```
    /// use tile_layout::{PartitionView, View};
    /// assert_eq!(PartitionView::new(View::row_major(&[9])?, &[4])?.index_space(), [3]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn index_space(&self) -> Vec<i64> {
        // No larger than the extents, which came from 64 bits.
        self.partition.index_space().into_iter().map(|tiles| tiles as i64).collect()
    }

    /// The tile at an index, of full size; what sticks out of the tensor is filled.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`], [`ErrorKind::OutOfBounds`] outside the index space.
    ///
    /// ```
    /// use tile_layout::{PartitionView, View};
    /// let tiles = PartitionView::new(View::row_major(&[9])?, &[4])?;
    /// assert_eq!(tiles.tile(&[2])?.offsets().collect::<Vec<_>>(), [Some(8), None, None, None]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tile(&self, index: &[i64]) -> Result<View> {
        let window = self.window(index)?;
        let start: Vec<i64> = window.start.iter().map(|&start| start as i64).collect();
        self.view.block(&start, &self.sizes)
    }

    /// Whether a tile sticks out of the tensor, so that loading and storing it need a mask.
    ///
    /// # Errors
    /// As [`PartitionView::tile`].
    ///
    /// ```
    /// use tile_layout::{PartitionView, View};
    /// let tiles = PartitionView::new(View::row_major(&[9])?, &[4])?;
    /// assert!(!tiles.is_partial(&[1])? && tiles.is_partial(&[2])?);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_partial(&self, index: &[i64]) -> Result<bool> {
        Ok(self.window(index)?.valid != self.partition.tile())
    }

    fn window(&self, index: &[i64]) -> Result<Window> {
        if index.len() != self.view.rank() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("{} tile indices for a view of {} axes", index.len(), self.view.rank()),
            ));
        }
        counts(index).and_then(|index| self.partition.window(&index)).ok_or_else(|| {
            let space = self.index_space();
            let outside = index.iter().zip(&space).position(|(at, tiles)| !(0..*tiles).contains(at));
            LayoutError::at(
                ErrorKind::OutOfBounds,
                outside.as_slice(),
                format!("tile {index:?} lies outside the index space {space:?}"),
            )
        })
    }
}

/// Numbers that count something; `None` where one is negative.
fn counts(numbers: &[i64]) -> Option<Vec<usize>> {
    numbers.iter().map(|&number| usize::try_from(number).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Movement;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn windows_cover_every_element_once() {
        let p = Partition::new(&[10, 7], &[4, 3]).unwrap();
        let mut hits = vec![0; 70];
        for i in 0..p.index_space()[0] {
            for j in 0..p.index_space()[1] {
                let w = p.window(&[i, j]).unwrap();
                for r in 0..w.valid[0] {
                    for c in 0..w.valid[1] {
                        hits[(w.start[0] + r) * 7 + w.start[1] + c] += 1;
                    }
                }
            }
        }
        assert!(hits.iter().all(|&h| h == 1));
    }

    #[test]
    fn degenerate_partitions_are_refused_or_empty() {
        assert_eq!(Partition::new(&[4], &[0]), None);
        assert_eq!(Partition::new(&[4], &[2, 2]), None);
        let empty = Partition::new(&[0], &[4]).unwrap();
        assert_eq!(empty.index_space(), [0]);
        assert_eq!(empty.window(&[0]), None);
        assert_eq!(Partition::new(&[4], &[2]).unwrap().window(&[usize::MAX]), None);
    }

    /// Windows (0,1), (1,2), (2,3) begin at offsets of their own and share what they reach over.
    #[test]
    fn vectors_that_share_memory_are_not_writable() {
        let overlapping = View::row_major(&[4]).unwrap().unfold(0, 2, 1).unwrap().vectorize(&[1, 2]).unwrap();
        let error = PartitionView::writable(overlapping, &[1, 1]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "(3,1):(1,0) + 0 of (1,2):(0,1) has elements that share memory; writing to its tiles would be a race"
        );
        assert_eq!(error.kind(), ErrorKind::NotInjective);
        let side_by_side =
            View::row_major(&[4]).unwrap().unfold(0, 2, 2).unwrap().vectorize(&[1, 2]).unwrap();
        assert!(PartitionView::writable(side_by_side, &[1, 1]).is_ok());
    }
}
