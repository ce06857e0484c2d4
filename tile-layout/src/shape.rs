//! Extents of dense row-major arrays: strides, linear indices, broadcasting.

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
/// ```
/// assert_eq!(tile_layout::linear_index(&[1, 2, 3], &[2, 3, 4]), 23);
/// ```
pub fn linear_index(index: &[usize], extents: &[usize]) -> usize {
    index.iter().zip(extents).fold(0, |linear, (&i, &extent)| linear * extent + i)
}

/// The multi-index at a row-major position: the inverse of [`linear_index`].
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
