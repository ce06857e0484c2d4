//! What strides and layouts tell of each other: the layout that strides have, and the unknown strides of a layout.
//!
//! Nothing is refused here: strides that nothing tells stay unknown, and the descriptor's checks find them.

use super::TensorLayout;
use crate::tuple::Ints;
use alloc::vec::Vec;

/// Which of the last two axes is contiguous: that one and the other.
pub(super) struct Matrix {
    pub(super) inner: usize,
    pub(super) outer: usize,
}

impl Matrix {
    pub(super) fn of(layout: TensorLayout, rank: usize) -> Option<Matrix> {
        match layout {
            TensorLayout::RowMajor if rank > 1 => Some(Matrix { inner: rank - 1, outer: rank - 2 }),
            TensorLayout::ColumnMajor if rank > 1 => Some(Matrix { inner: rank - 2, outer: rank - 1 }),
            _ => None,
        }
    }
}

/// The layout that strides tell; [`TensorLayout::Default`] where they tell none. Of a matrix whose strides are both 1 one
/// axis has one element, and the other one is contiguous.
pub(super) fn chosen(lengths: &[i64], strides: &[i64]) -> TensorLayout {
    match (lengths.len(), strides) {
        (_, []) | (1, _) => TensorLayout::RowMajor,
        (2, [1, 1]) if lengths[0] <= 1 && lengths[1] > 1 => TensorLayout::ColumnMajor,
        (2, [_, 1]) => TensorLayout::RowMajor,
        (2, [1, _]) => TensorLayout::ColumnMajor,
        _ => TensorLayout::Default,
    }
}

/// Strides with the unknown ones derived, as far as the layout says how.
pub(super) fn completed(lengths: &[i64], strides: &[i64], layout: TensorLayout) -> Ints {
    if layout == TensorLayout::Bypass {
        return Ints::from_slice(strides);
    }
    let matrix = Matrix::of(layout, lengths.len());
    if !strides.is_empty() && strides.len() != lengths.len() {
        return Ints::from_slice(strides);
    }
    if strides.iter().all(|&stride| stride <= 0) {
        return packed(lengths, matrix.as_ref());
    }
    let mut strides = Ints::from_slice(strides);
    if let Some(Matrix { inner, outer }) = matrix {
        if strides[inner] <= 0 {
            strides[inner] = 1;
        }
        if strides[outer] <= 0 {
            strides[outer] = lengths[inner].max(1).saturating_mul(strides[inner]);
        }
    }
    strides
}

/// Packed strides: the last axis contiguous, or of the last two the one that the matrix says.
fn packed(lengths: &[i64], matrix: Option<&Matrix>) -> Ints {
    let mut strides: Ints = lengths.iter().map(|_| 1).collect();
    let mut fastest_first: Vec<usize> = (0..lengths.len()).rev().collect();
    if let Some(Matrix { inner, outer }) = matrix {
        fastest_first[..2].copy_from_slice(&[*inner, *outer]);
    }
    let mut space = 1i64;
    for axis in fastest_first {
        strides[axis] = space;
        // Of an empty axis no stride is 0, which would be an unknown one.
        space = space.saturating_mul(lengths[axis].max(1));
    }
    strides
}
