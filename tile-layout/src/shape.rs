//! Extents of dense row-major arrays: strides, linear indices, lines along an axis, broadcasting.

use alloc::vec;
use alloc::vec::Vec;

/// The number of elements; 1 for rank 0.
///
/// # Errors
/// `None` where the product overflows.
///
/// ```
/// assert_eq!(tile_layout::element_count(&[2, 3]), Some(6));
/// assert_eq!(tile_layout::element_count(&[usize::MAX, 2]), None);
/// ```
pub fn element_count(extents: &[usize]) -> Option<usize> {
    extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))
}

/// Strides in elements, the last axis contiguous.
///
/// # Panics
/// If the product of the extents behind the first exceeds the numbers that there are, where overflow is looked for. (With an
/// extent of 0 before them there may still be no elements.)
///
/// ```
/// assert_eq!(tile_layout::row_major_strides(&[2, 3, 4]), [12, 4, 1]);
/// ```
pub fn row_major_strides(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; extents.len()];
    for axis in (0..extents.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * extents[axis + 1];
    }
    strides
}

/// The position of a multi-index in row-major order.
///
/// # Panics
/// If the position of an index outside exceeds the numbers that there are, where overflow is looked for.
///
/// ```
/// assert_eq!(tile_layout::linear_index(&[1, 2, 3], &[2, 3, 4]), 23);
/// ```
pub fn linear_index(index: &[usize], extents: &[usize]) -> usize {
    index.iter().zip(extents).fold(0, |linear, (&i, &extent)| linear * extent + i)
}

/// The multi-index at a row-major position: the inverse of [`linear_index`].
///
/// # Panics
/// If an extent is 0, so that there is no position.
///
/// ```
/// assert_eq!(tile_layout::multi_index(23, &[2, 3, 4]), [1, 2, 3]);
/// ```
pub fn multi_index(mut linear: usize, extents: &[usize]) -> Vec<usize> {
    let mut index = vec![0; extents.len()];
    for axis in (0..extents.len()).rev() {
        index[axis] = linear % extents[axis];
        linear /= extents[axis];
    }
    index
}

/// The lines of a dense row-major array along an axis: what a fold, a scan or a sort goes along, one after the other.
///
/// ```
/// use tile_layout::shape::Lines;
/// let lines = Lines::of(&[2, 3, 4], 1);
/// assert_eq!((lines.count(), lines.extent), (8, 3));
/// assert!(lines.positions(5).eq([13, 17, 21]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The product of the extents before the axis.
    pub outer: usize,
    /// Elements of a line.
    pub extent: usize,
    /// The product of the extents behind the axis: how far apart a line's elements are.
    pub inner: usize,
}

impl Lines {
    /// The lines of these extents along an axis.
    ///
    /// # Panics
    /// If there is no such axis; if the product of the extents before the axis, or behind it, exceeds the numbers that there
    /// are, where overflow is looked for.
    ///
    /// ```
    /// assert_eq!(tile_layout::shape::Lines::of(&[5, 7], 0).inner, 7);
    /// ```
    pub fn of(extents: &[usize], axis: usize) -> Lines {
        Lines {
            outer: extents[..axis].iter().product(),
            extent: extents[axis],
            inner: extents[axis + 1..].iter().product(),
        }
    }

    /// How many lines there are.
    ///
    /// # Panics
    /// If there are more lines than numbers, where overflow is looked for. (Lines of no elements may be as many.)
    ///
    /// ```
    /// assert_eq!(tile_layout::shape::Lines::of(&[5, 7], 0).count(), 7);
    /// ```
    pub fn count(self) -> usize {
        self.outer * self.inner
    }

    /// The positions of a line's elements, where there is such a line.
    ///
    /// # Panics
    /// If an extent behind the axis is 0, so that there are no lines; if a position exceeds the numbers that there are, where
    /// overflow is looked for.
    ///
    /// ```
    /// assert!(tile_layout::shape::Lines::of(&[2, 3], 1).positions(1).eq([3, 4, 5]));
    /// ```
    pub fn positions(self, line: usize) -> impl Iterator<Item = usize> {
        let start = line / self.inner * self.extent * self.inner + line % self.inner;
        (0..self.extent).map(move |k| start + k * self.inner)
    }
}

/// The common shape of two shapes of one rank, where axes of extent 1 repeat; `None` where there is none.
///
/// ```
/// assert_eq!(tile_layout::broadcast(&[4, 1], &[1, 8]), Some(vec![4, 8]));
/// assert_eq!(tile_layout::broadcast(&[4, 2], &[4, 8]), None);
/// ```
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    if a.len() != b.len() {
        return None;
    }
    a.iter()
        .zip(b)
        .map(|(&x, &y)| match (x, y) {
            _ if x == y => Some(x),
            (1, _) => Some(y),
            (_, 1) => Some(x),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_and_multi_index_are_inverse() {
        let extents = [3, 1, 5, 2];
        for linear in 0..element_count(&extents).unwrap() {
            assert_eq!(linear_index(&multi_index(linear, &extents), &extents), linear);
        }
    }

    #[test]
    fn element_count_does_not_wrap() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[usize::MAX, 2]), None);
    }
}
