//! Host tensor descriptors: lengths and strides as they come from outside, completed and validated.
//!
//! The rules are those of Composable Kernel's `HostTensorDescriptor`: a layout is chosen where none is given,
//! unknown strides (0 or negative) are derived, and what is known is checked against the layout. Where upstream
//! contradicts its own validation (automatic column-major strides of a matrix that is not square) the strides
//! here are the ones that a column-major matrix has.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::tuple::{IntTuple, Ints, product};
use crate::view::View;
use alloc::format;
use core::fmt;
use core::str::FromStr;

/// How the last two axes lie in memory, and how much is checked.
///
/// ```
/// use tile_layout::{ConvolutionLayout, TensorLayout};
/// assert_eq!("row".parse(), Ok(TensorLayout::RowMajor));
/// assert_eq!("NHWC".parse(), Ok(TensorLayout::Convolution(ConvolutionLayout::Nhwc)));
/// assert_eq!(TensorLayout::Bypass.to_string(), "bypass");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorLayout {
    /// To be chosen: row-major without strides, else by the stride that is 1.
    #[default]
    Default,
    /// The last axis contiguous; higher axes are batches.
    RowMajor,
    /// The last but one axis contiguous; higher axes are batches.
    ColumnMajor,
    /// A named convolution layout: missing strides are packed, given ones are taken as they are.
    Convolution(ConvolutionLayout),
    /// Strides are taken as they are, and nothing is checked.
    Bypass,
}

macro_rules! convolution_layouts {
    ($($variant:ident = $name:literal: $what:literal,)+) => {
        /// Convolution layouts by name: axes from the slowest to the fastest, `G` groups, `N` images, `C` and `K`
        /// channels in and out, `D H W` and `Z Y X` positions in images and filters.
        ///
        /// ```
        /// use tile_layout::ConvolutionLayout;
        /// assert_eq!("GKYXC".parse::<ConvolutionLayout>()?.to_string(), "GKYXC");
        /// # Ok::<(), tile_layout::LayoutError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ConvolutionLayout {
            $(#[doc = $what] $variant,)+
        }

        impl ConvolutionLayout {
            /// All of them.
            ///
            /// ```
            /// assert!(tile_layout::ConvolutionLayout::ALL.len() > 30);
            /// ```
            pub const ALL: &'static [ConvolutionLayout] = &[$(ConvolutionLayout::$variant),+];

            fn name(self) -> &'static str {
                match self {
                    $(ConvolutionLayout::$variant => $name,)+
                }
            }
        }
    };
}

// The names of `ck/tensor_operation/gpu/device/tensor_layout.hpp`, namespace `convolution`.
convolution_layouts! {
    Nwc = "NWC": "Images of one dimension, channels last.",
    Nhwc = "NHWC": "Images of two dimensions, channels last.",
    Ndhwc = "NDHWC": "Images of three dimensions, channels last.",
    Ncw = "NCW": "Images of one dimension, channels first.",
    Nchw = "NCHW": "Images of two dimensions, channels first.",
    Ncdhw = "NCDHW": "Images of three dimensions, channels first.",
    Gnwc = "GNWC": "Grouped images of one dimension, channels last.",
    Gnhwc = "GNHWC": "Grouped images of two dimensions, channels last.",
    Gndhwc = "GNDHWC": "Grouped images of three dimensions, channels last.",
    Gncw = "GNCW": "Grouped images of one dimension, channels first.",
    Gnchw = "GNCHW": "Grouped images of two dimensions, channels first.",
    Gncdhw = "GNCDHW": "Grouped images of three dimensions, channels first.",
    Nwgc = "NWGC": "Images of one dimension, groups beside channels.",
    Nhwgc = "NHWGC": "Images of two dimensions, groups beside channels.",
    Ndhwgc = "NDHWGC": "Images of three dimensions, groups beside channels.",
    Ngchw = "NGCHW": "Images of two dimensions, groups before channels.",
    Ngcdhw = "NGCDHW": "Images of three dimensions, groups before channels.",
    Kxc = "KXC": "Filters of one dimension, channels last.",
    Kyxc = "KYXC": "Filters of two dimensions, channels last.",
    Kzyxc = "KZYXC": "Filters of three dimensions, channels last.",
    Kcx = "KCX": "Filters of one dimension, channels first.",
    Kcyx = "KCYX": "Filters of two dimensions, channels first.",
    Kczyx = "KCZYX": "Filters of three dimensions, channels first.",
    Gkxc = "GKXC": "Grouped filters of one dimension, channels last.",
    Gkyxc = "GKYXC": "Grouped filters of two dimensions, channels last.",
    Gkzyxc = "GKZYXC": "Grouped filters of three dimensions, channels last.",
    Gkcx = "GKCX": "Grouped filters of one dimension, channels first.",
    Gkcyx = "GKCYX": "Grouped filters of two dimensions, channels first.",
    Gkczyx = "GKCZYX": "Grouped filters of three dimensions, channels first.",
    Kxgc = "KXGC": "Filters of one dimension, groups beside channels.",
    Kyxgc = "KYXGC": "Filters of two dimensions, groups beside channels.",
    Kzyxgc = "KZYXGC": "Filters of three dimensions, groups beside channels.",
    Nwk = "NWK": "Results of one dimension, channels last.",
    Nhwk = "NHWK": "Results of two dimensions, channels last.",
    Ndhwk = "NDHWK": "Results of three dimensions, channels last.",
    Nkw = "NKW": "Results of one dimension, channels first.",
    Nkhw = "NKHW": "Results of two dimensions, channels first.",
    Nkdhw = "NKDHW": "Results of three dimensions, channels first.",
    Gnwk = "GNWK": "Grouped results of one dimension, channels last.",
    Gnhwk = "GNHWK": "Grouped results of two dimensions, channels last.",
    Gndhwk = "GNDHWK": "Grouped results of three dimensions, channels last.",
    Nwgk = "NWGK": "Results of one dimension, groups beside channels.",
    Nhwgk = "NHWGK": "Results of two dimensions, groups beside channels.",
    Ndhwgk = "NDHWGK": "Results of three dimensions, groups beside channels.",
    Ngkhw = "NGKHW": "Results of two dimensions, groups before channels.",
    Ngkdhw = "NGKDHW": "Results of three dimensions, groups before channels.",
}

impl fmt::Display for ConvolutionLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ConvolutionLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<ConvolutionLayout> {
        let named = ConvolutionLayout::ALL.iter().find(|layout| layout.name() == text);
        named.copied().ok_or_else(|| {
            LayoutError::new(
                ErrorKind::Syntax,
                format!("`{text}` is no convolution layout; NHWC and GKYXC are"),
            )
        })
    }
}

impl fmt::Display for TensorLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorLayout::Default => f.write_str("default"),
            TensorLayout::RowMajor => f.write_str("row"),
            TensorLayout::ColumnMajor => f.write_str("col"),
            TensorLayout::Convolution(layout) => layout.fmt(f),
            TensorLayout::Bypass => f.write_str("bypass"),
        }
    }
}

impl FromStr for TensorLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<TensorLayout> {
        match text {
            "default" => Ok(TensorLayout::Default),
            "row" => Ok(TensorLayout::RowMajor),
            "col" => Ok(TensorLayout::ColumnMajor),
            "bypass" => Ok(TensorLayout::Bypass),
            name => name.parse().map(TensorLayout::Convolution),
        }
    }
}

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

/// Which of the last two axes is contiguous: that one and the other.
struct Matrix {
    inner: usize,
    outer: usize,
}

impl Matrix {
    fn of(layout: TensorLayout, rank: usize) -> Option<Matrix> {
        match layout {
            TensorLayout::RowMajor if rank > 1 => Some(Matrix { inner: rank - 1, outer: rank - 2 }),
            TensorLayout::ColumnMajor if rank > 1 => Some(Matrix { inner: rank - 2, outer: rank - 1 }),
            _ => None,
        }
    }
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

/// The layout that strides tell; [`TensorLayout::Default`] where they tell none. Of a matrix whose strides are both 1 one
/// axis has one element, and the other one is contiguous.
fn chosen(lengths: &[i64], strides: &[i64]) -> TensorLayout {
    match (lengths.len(), strides) {
        (_, []) | (1, _) => TensorLayout::RowMajor,
        (2, [1, 1]) if lengths[0] <= 1 && lengths[1] > 1 => TensorLayout::ColumnMajor,
        (2, [_, 1]) => TensorLayout::RowMajor,
        (2, [1, _]) => TensorLayout::ColumnMajor,
        _ => TensorLayout::Default,
    }
}

/// Strides with the unknown ones derived, as far as the layout says how.
fn completed(lengths: &[i64], strides: &[i64], layout: TensorLayout) -> Ints {
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
    let mut space = 1i64;
    let inner = matrix.map(|matrix| [matrix.inner, matrix.outer]);
    let (front, back) = match inner {
        Some(inner) => (lengths.len() - 2, inner),
        None => (lengths.len(), [0; 2]),
    };
    let innermost = back.iter().copied().filter(|_| inner.is_some());
    for axis in innermost.chain((0..front).rev()) {
        strides[axis] = space;
        // Of an empty axis no stride is 0, which would be an unknown one.
        space = space.saturating_mul(lengths[axis].max(1));
    }
    strides
}

impl fmt::Display for HostTensorDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lengths, strides) = (IntTuple::flat(&self.lengths), IntTuple::flat(&self.strides));
        write!(f, "lengths {lengths} strides {strides} {}", self.layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [TensorLayout; 4] = [
        TensorLayout::Default,
        TensorLayout::RowMajor,
        TensorLayout::ColumnMajor,
        TensorLayout::Convolution(ConvolutionLayout::Nhwc),
    ];

    /// An empty tensor is packed as one is whose empty axes have one element.
    #[test]
    fn empty_tensors_have_strides() {
        for layout in LAYOUTS {
            for lengths in [[0, 4], [4, 0], [0, 0]] {
                let empty = HostTensorDescriptor::new(&lengths, layout).unwrap();
                let alike = HostTensorDescriptor::new(&lengths.map(|length| length.max(1)), layout).unwrap();
                assert_eq!(empty.strides(), alike.strides(), "{empty}");
                assert_eq!(empty.element_space_size(), alike.element_space_size(), "{empty}");
                assert_eq!((empty.element_size(), empty.to_view().unwrap().shape()), (0, &lengths[..]));
                let unknown = HostTensorDescriptor::with_strides(&lengths, &[0, -1], layout);
                match layout {
                    TensorLayout::Default => {
                        assert_eq!(unknown.unwrap_err().kind(), ErrorKind::AbstractLayout);
                    }
                    _ => assert_eq!(unknown.unwrap().strides(), alike.strides(), "{empty}"),
                }
            }
        }
        let derived = HostTensorDescriptor::with_strides(&[4, 0], &[0, 2], TensorLayout::RowMajor).unwrap();
        assert_eq!(derived.strides(), [2, 2]);
        let batch = HostTensorDescriptor::new(&[2, 0, 3], TensorLayout::ColumnMajor).unwrap();
        assert_eq!((batch.strides(), batch.element_space_size()), (&[3, 1, 1][..], 6));
    }

    /// Unknown strides are packed before a layout is looked for; the message has those that the caller knows.
    #[test]
    fn strides_that_tell_no_layout_are_the_given_ones() {
        for (lengths, strides, named) in [
            (&[2, 4][..], &[0, -1][..], "strides (0,-1) tell no layout for lengths (2,4)"),
            (&[4, 3], &[2, 2], "strides (2,2) tell no layout for lengths (4,3)"),
            (&[2, 4, 3], &[12, 0, 1], "strides (12,0,1) tell no layout for lengths (2,4,3)"),
        ] {
            let error =
                HostTensorDescriptor::with_strides(lengths, strides, TensorLayout::Default).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AbstractLayout);
            assert_eq!(alloc::format!("{error}"), alloc::format!("{named}: name one, or bypass the check"));
        }
    }

    /// Batches may share elements: the same matrix again, or windows of a signal.
    #[test]
    fn batches_may_overlap() {
        for batch in [1, 3, 100] {
            let strides = [batch, 3, 1];
            let windows = HostTensorDescriptor::with_strides(&[2, 4, 3], &strides, TensorLayout::RowMajor);
            assert_eq!(windows.unwrap().strides(), strides);
        }
    }

    /// Of several axes that count matrices, each goes over what the next one spans.
    #[test]
    fn batches_of_batches_do_not_overlap() {
        let strided = |strides: [i64; 4]| {
            HostTensorDescriptor::with_strides(&[2, 5, 4, 3], &strides, TensorLayout::RowMajor)
        };
        assert_eq!(strided([15, 3, 3, 1]).unwrap().strides(), [15, 3, 3, 1]);
        let error = strided([14, 3, 3, 1]).unwrap_err();
        assert_eq!((error.kind(), error.modes()), (ErrorKind::OverlappingStrides, &[0, 1][..]));
    }

    /// What a packed descriptor has for strides is taken for the strides of a layout that has them.
    #[test]
    fn packed_strides_tell_a_layout() {
        for lengths in [[1, 5], [5, 1], [1, 1], [4, 3]] {
            for layout in [TensorLayout::RowMajor, TensorLayout::ColumnMajor] {
                let packed = HostTensorDescriptor::new(&lengths, layout).unwrap();
                let again =
                    HostTensorDescriptor::with_strides(&lengths, packed.strides(), TensorLayout::Default)
                        .unwrap();
                assert_eq!(again.strides(), packed.strides());
            }
        }
        let chosen = |lengths: [i64; 2]| {
            HostTensorDescriptor::with_strides(&lengths, &[1, 1], TensorLayout::Default)
                .map(|made| made.layout())
        };
        assert_eq!(chosen([1, 5]), Ok(TensorLayout::ColumnMajor));
        assert_eq!(
            (chosen([5, 1]), chosen([1, 1])),
            (Ok(TensorLayout::RowMajor), Ok(TensorLayout::RowMajor))
        );
        assert_eq!(chosen([2, 5]).unwrap_err().kind(), ErrorKind::OverlappingStrides);
    }

    /// Unchecked lengths and strides may differ in number, and then no element has a place.
    #[test]
    fn without_strides_there_is_no_offset() {
        for strides in [&[][..], &[1], &[1, 2, 3]] {
            let unchecked =
                HostTensorDescriptor::with_strides(&[4, 3], strides, TensorLayout::Bypass).unwrap();
            let error = unchecked.offset(&[3, 2]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Rank);
            assert_eq!(alloc::format!("{error}"), alloc::format!("{} strides for 2 lengths", strides.len()));
            assert_eq!(unchecked.to_view().unwrap_err().kind(), ErrorKind::Rank);
        }
    }

    #[test]
    fn every_length_has_a_stride() {
        for layout in LAYOUTS {
            for strides in [&[0][..], &[-1], &[1], &[0, 0, 0], &[12, 3, 1]] {
                let refused = HostTensorDescriptor::with_strides(&[4, 3], strides, layout).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Rank, "{layout} {strides:?}");
                assert_eq!(
                    alloc::format!("{refused}"),
                    alloc::format!("{} strides for 2 lengths", strides.len())
                );
            }
        }
    }
}
