//! Host tensor descriptors: lengths and strides as they come from outside, completed and validated.
//!
//! The rules are those of Composable Kernel's `HostTensorDescriptor`: a layout is chosen where none is given,
//! unknown strides (0 or negative) are derived, and what is known is checked against the layout. Where upstream
//! contradicts its own validation (automatic column-major strides of a matrix that is not square) the strides
//! here are the ones that a column-major matrix has.

mod names;
mod strides;
#[cfg(test)]
mod tests;

pub use names::{ConvolutionLayout, TensorLayout};

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::tuple::{IntTuple, Ints, product};
use crate::view::View;
use alloc::format;
use core::fmt;
use strides::{Matrix, chosen, completed};

/// Lengths and strides of a tensor in host memory, complete and checked.
///
/// ```
/// use tile_layout::{HostTensorDescriptor, TensorLayout};
/// let batch = HostTensorDescriptor::new(&[2, 4, 3], TensorLayout::ColumnMajor)?;
/// assert_eq!(batch.to_string(), "lengths (2,4,3) strides (12,1,4) col");
/// assert_eq!((batch.element_size(), batch.element_space_size()), (24, 24));
/// assert_eq!(batch.offset(&[1, 3, 2])?, 23);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensorDescriptor {
    lengths: Ints,
    strides: Ints,
    layout: TensorLayout,
}

impl HostTensorDescriptor {
    /// A packed tensor.
    ///
    /// # Errors
    /// As [`HostTensorDescriptor::with_strides`].
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// assert_eq!(HostTensorDescriptor::new(&[4, 3], TensorLayout::Default)?.strides(), [3, 1]);
    /// assert_eq!(HostTensorDescriptor::new(&[4, 3], TensorLayout::ColumnMajor)?.strides(), [1, 4]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(lengths: &[i64], layout: TensorLayout) -> Result<HostTensorDescriptor> {
        HostTensorDescriptor::with_strides(lengths, &[], layout)
    }

    /// A tensor with strides in elements; those of 0 or less are unknown. No strides, or only unknown ones, are
    /// packed; of a row- or column-major matrix the two innermost are derived one by one. A matrix that overlaps itself
    /// is refused. The matrices of a batch may overlap each other, as windows of a signal do; where several axes count
    /// them, each must go over what the next one spans.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] for lengths and strides of different number or no lengths at all;
    /// [`ErrorKind::AbstractLayout`] where strides are given and no layout can be told from them;
    /// [`ErrorKind::NegativeStride`] where a stride stays unknown; [`ErrorKind::OverlappingStrides`], naming the
    /// axes; [`ErrorKind::InvalidExtent`] for a negative length; [`ErrorKind::Overflow`].
    ///
    /// ```
    /// use tile_layout::{ErrorKind, HostTensorDescriptor, TensorLayout};
    /// let padded = HostTensorDescriptor::with_strides(&[4, 3], &[8, 0], TensorLayout::RowMajor)?;
    /// assert_eq!(padded.strides(), [8, 1]);
    /// let error = HostTensorDescriptor::with_strides(&[4, 3], &[2, 1], TensorLayout::RowMajor).unwrap_err();
    /// assert_eq!((error.kind(), error.modes()), (ErrorKind::OverlappingStrides, &[0, 1][..]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn with_strides(
        lengths: &[i64],
        strides: &[i64],
        layout: TensorLayout,
    ) -> Result<HostTensorDescriptor> {
        if let Some(axis) = lengths.iter().position(|&length| length < 0) {
            return Err(LayoutError::at(
                ErrorKind::InvalidExtent,
                &[axis],
                format!("length {} of axis {axis} is negative", lengths[axis]),
            ));
        }
        product(lengths)?;
        let layout = if layout == TensorLayout::Default { chosen(lengths, strides) } else { layout };
        let complete = completed(lengths, strides, layout);
        let descriptor =
            HostTensorDescriptor { lengths: Ints::from_slice(lengths), strides: complete, layout };
        descriptor.validate(strides)?;
        descriptor.check_space()?;
        Ok(descriptor)
    }

    /// The lengths.
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// assert_eq!(HostTensorDescriptor::new(&[4, 3], TensorLayout::Default)?.lengths(), [4, 3]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn lengths(&self) -> &[i64] {
        &self.lengths
    }

    /// The strides in elements.
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// assert_eq!(HostTensorDescriptor::new(&[4, 3], TensorLayout::Default)?.strides(), [3, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The layout given, or the one chosen; [`TensorLayout::Default`] where none could be told.
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// let columns = HostTensorDescriptor::with_strides(&[4, 3], &[1, 4], TensorLayout::Default)?;
    /// assert_eq!(columns.layout(), TensorLayout::ColumnMajor);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn layout(&self) -> TensorLayout {
        self.layout
    }

    /// Number of elements.
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// assert_eq!(HostTensorDescriptor::new(&[4, 3], TensorLayout::Default)?.element_size(), 12);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn element_size(&self) -> i64 {
        product(&self.lengths).unwrap_or(i64::MAX)
    }

    /// Elements from the first to the last one in memory, both counted. An empty axis counts as one of one element.
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// let padded = HostTensorDescriptor::with_strides(&[4, 3], &[8, 1], TensorLayout::RowMajor)?;
    /// assert_eq!(padded.element_space_size(), 27);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn element_space_size(&self) -> i64 {
        self.space().unwrap_or(i64::MAX)
    }

    fn space(&self) -> Option<i64> {
        let mut axes = self.lengths.iter().zip(&self.strides).filter(|(length, _)| **length > 0);
        // Strides below 0, which some layouts take as they are, go as far the other way.
        axes.try_fold(1i64, |space, (length, stride)| {
            space.checked_add((length - 1).checked_mul(stride.checked_abs()?)?)
        })
    }

    /// The offset of an index.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] for an index, or a bypassed descriptor's strides, that are not as many as the lengths;
    /// [`ErrorKind::OutOfBounds`].
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// let matrix = HostTensorDescriptor::new(&[4, 3], TensorLayout::Default)?;
    /// assert_eq!(matrix.offset(&[1, 2])?, 5);
    /// assert!(matrix.offset(&[1]).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offset(&self, index: &[i64]) -> Result<i64> {
        crate::view::check_index(&self.lengths, index)?;
        self.check_count_of_strides()?;
        // Every offset lies within the space, which was checked.
        Ok(index.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum())
    }

    /// The tensor as a view.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] for a bypassed descriptor whose strides and lengths differ in number.
    ///
    /// ```
    /// use tile_layout::{HostTensorDescriptor, TensorLayout};
    /// let matrix = HostTensorDescriptor::new(&[4, 3], TensorLayout::ColumnMajor)?;
    /// assert_eq!(matrix.to_view()?.to_string(), "(4,3):(1,4) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn to_view(&self) -> Result<View> {
        View::strided(&self.lengths, &self.strides, 0)
    }

    /// Whether the layout and the strides, which were completed from `given` ones, are those of a tensor.
    fn validate(&self, given: &[i64]) -> Result<()> {
        let rank = self.lengths.len();
        if self.layout == TensorLayout::Bypass {
            return Ok(());
        }
        if rank == 0 {
            return Err(LayoutError::new(ErrorKind::Rank, "a tensor descriptor needs one length or more"));
        }
        self.check_count_of_strides()?;
        if rank == 1 || matches!(self.layout, TensorLayout::Convolution(_)) {
            return Ok(());
        }
        let Some(matrix) = Matrix::of(self.layout, rank) else {
            return Err(LayoutError::new(
                ErrorKind::AbstractLayout,
                format!(
                    "strides {} tell no layout for lengths {}: name one, or bypass the check",
                    IntTuple::flat(given),
                    IntTuple::flat(&self.lengths)
                ),
            ));
        };
        self.validate_matrix(&matrix)
    }

    fn check_count_of_strides(&self) -> Result<()> {
        let (strides, lengths) = (self.strides.len(), self.lengths.len());
        match strides == lengths {
            true => Ok(()),
            false => {
                Err(LayoutError::new(ErrorKind::Rank, format!("{strides} strides for {lengths} lengths")))
            }
        }
    }

    fn validate_matrix(&self, matrix: &Matrix) -> Result<()> {
        let rank = self.lengths.len();
        if let Some(axis) = self.strides.iter().position(|&stride| stride <= 0) {
            return Err(LayoutError::at(
                ErrorKind::NegativeStride,
                &[axis],
                format!("stride {} of axis {axis} is unknown and cannot be derived", self.strides[axis]),
            ));
        }
        let higher = (1..rank.saturating_sub(2)).map(|axis| (axis, axis - 1));
        for (inner, outer) in core::iter::once((matrix.inner, matrix.outer)).chain(higher) {
            let span = self.lengths[inner].checked_mul(self.strides[inner]);
            if span.is_none_or(|span| self.strides[outer] < span) {
                return Err(LayoutError::at(
                    ErrorKind::OverlappingStrides,
                    &[outer, inner],
                    format!(
                        "stride {} of axis {outer} is less than what axis {inner} spans, {} elements {} apart",
                        self.strides[outer], self.lengths[inner], self.strides[inner]
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_space(&self) -> Result<()> {
        match (self.space(), Layout::new(IntTuple::flat(&self.lengths), IntTuple::flat(&self.strides))) {
            (Some(_), Ok(_)) => Ok(()),
            // A bypassed descriptor may have no strides at all.
            (Some(_), Err(error)) if error.kind() == ErrorKind::Rank => Ok(()),
            _ => Err(LayoutError::new(ErrorKind::Overflow, format!("{self} reaches offsets beyond 2^62"))),
        }
    }
}

impl fmt::Display for HostTensorDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lengths, strides) = (IntTuple::flat(&self.lengths), IntTuple::flat(&self.strides));
        write!(f, "lengths {lengths} strides {strides} {}", self.layout)
    }
}
