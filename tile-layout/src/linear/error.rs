//! Decides how a refused request reads: one variant per mistake, holding the values that were wrong. Knows
//! nothing of how the other files find a mistake. Invariant: every message names the values and ends with what
//! to do about them.

use core::fmt;

use alloc::string::{String, ToString};

use super::Dim;
use crate::{ErrorKind, LayoutError, Swizzle};

/// Why a linear layout, or something computed from one, was refused.
///
/// ```
/// use tile_layout::linear::{LinearError, LinearLayout};
/// let error = LinearLayout::from_modes(&[(4, 3)]).unwrap_err();
/// assert_eq!(error, LinearError::OverlappingModes { mode: 0, other: 0, bit: 1 });
/// assert!(error.to_string().contains("mode 0"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinearError {
    /// A tile has an axis of extent 0.
    EmptyTile,
    /// One side has more bits than fit.
    TooManyBits {
        /// Bits asked for.
        bits: u64,
        /// Bits that fit.
        limit: u32,
    },
    /// A column has a bit at or above the number of rows.
    ColumnOutOfRange {
        /// Position of the column.
        column: usize,
        /// The column.
        value: u64,
        /// Rows of the matrix.
        rows: u32,
    },
    /// Two matrices that don't fit together were multiplied.
    SizeMismatch {
        /// Columns of the left factor.
        left_columns: u32,
        /// Rows of the right factor.
        right_rows: u32,
    },
    /// A matrix or layout without an inverse was inverted.
    NotInvertible {
        /// Output bits.
        rows: u32,
        /// Input bits.
        columns: u32,
        /// Independent columns.
        rank: u32,
    },
    /// A dimension appears twice on one side.
    DuplicateDim {
        /// The dimension.
        dim: Dim,
    },
    /// A dimension or an axis that isn't one of those in question.
    UnknownDim {
        /// The dimension.
        dim: Dim,
    },
    /// A dimension or an axis that a complete list leaves out.
    MissingDim {
        /// The dimension.
        dim: Dim,
    },
    /// A dimension that only one of two layouts has where they meet.
    UnmatchedDim {
        /// The dimension.
        dim: Dim,
    },
    /// An index lies outside its dimension.
    IndexOutOfRange {
        /// The dimension.
        dim: Dim,
        /// The index.
        index: u64,
        /// The dimension's extent.
        extent: u64,
    },
    /// A flat index has bits that the layout doesn't have.
    FlatIndexOutOfRange {
        /// The index.
        index: u64,
        /// Input bits of the layout.
        bits: u32,
    },
    /// A number that must be a power of two isn't.
    NotPowerOfTwo {
        /// What the number is.
        what: &'static str,
        /// The number.
        value: u64,
    },
    /// A mode of an integer layout runs backwards.
    NegativeStride {
        /// Position of the mode.
        mode: usize,
        /// Its stride.
        stride: i64,
    },
    /// The offsets of two modes (or of one mode with itself) share a bit, so that adding them carries.
    OverlappingModes {
        /// Position of the first mode.
        mode: usize,
        /// Position of the other; equal to `mode` where a mode overlaps itself.
        other: usize,
        /// The lowest offset bit that both set.
        bit: u32,
    },
    /// The offsets of a mode don't fit in 63 bits.
    OffsetOverflow {
        /// Position of the mode.
        mode: usize,
    },
    /// A swizzle reads bits that the offset doesn't have.
    SwizzleTooWide {
        /// The swizzle.
        swizzle: Swizzle,
        /// Bits of the offset.
        width: u32,
    },
    /// A swizzled layout that doesn't send index 0 to offset 0.
    StartsElsewhere {
        /// What is added before the swizzle.
        offset: i64,
    },
    /// An integer layout or a swizzle was refused.
    Layout(LayoutError),
    /// The inner layout of a composition produces more than the outer one accepts.
    ExtentMismatch {
        /// The dimension.
        dim: Dim,
        /// Extent that one side has.
        found: u64,
        /// Extent that the other needs.
        expected: u64,
    },
    /// A reshape changes the number of bits.
    BitCountMismatch {
        /// Bits of the layout's side.
        found: u32,
        /// Bits of the requested groups.
        requested: u32,
    },
    /// An instruction that has no such operand.
    UnsupportedFragment {
        /// The instruction family.
        instruction: &'static str,
        /// What was asked for, and what there is.
        reason: String,
    },
    /// The target of a conversion needs an element that the source doesn't hold.
    ElementNotHeld {
        /// The input dimension of the target whose column leaves the source's image.
        dim: Dim,
        /// The bit of that dimension.
        bit: u32,
    },
    /// The places of a distribution don't lead to all elements of a piece.
    ElementsNotReached {
        /// Bits of the elements that they lead to.
        reached: u32,
        /// Bits of the elements of a piece.
        bits: u32,
    },
    /// A memory access that no warp can make, or that shared memory can't serve.
    BadAccess {
        /// What is wrong with it, with the values.
        reason: String,
    },
}

impl fmt::Display for LinearError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyBits { bits, limit } => {
                write!(f, "{bits} bits on one side, but at most {limit} fit; use fewer or smaller dimensions")
            }
            Self::ColumnOutOfRange { column, value, rows } => {
                write!(f, "column {column} is {value:#x}, which needs more than {rows} rows; add output bits")
            }
            Self::SizeMismatch { left_columns, right_rows } => {
                write!(
                    f,
                    "left factor has {left_columns} columns, right factor {right_rows} rows; make them equal"
                )
            }
            Self::NotInvertible { rows, columns, rank } => {
                write!(
                    f,
                    "{columns} input bits reach {rank} of {rows} output bits one to one, which has no inverse; \
                     use the pseudo-inverse"
                )
            }
            Self::DuplicateDim { dim } => {
                write!(f, "dimension {dim} appears twice on one side; name it once")
            }
            Self::UnknownDim { dim } => write!(f, "dimension {dim} is none of those here; use one of them"),
            Self::MissingDim { dim } => write!(f, "dimension {dim} is missing; name each dimension once"),
            Self::UnmatchedDim { dim } => {
                write!(f, "dimension {dim} exists on one side only; give both sides the same dimensions")
            }
            Self::IndexOutOfRange { dim, index, extent } => {
                write!(f, "{dim} index {index} is not below its extent {extent}; pass a smaller index")
            }
            Self::FlatIndexOutOfRange { index, bits } => {
                write!(
                    f,
                    "flat index {index} needs more than the layout's {bits} input bits; pass a smaller index"
                )
            }
            Self::NotPowerOfTwo { what, value } => {
                write!(f, "{what} is {value}, which is not a power of two; use the integer layout instead")
            }
            Self::NegativeStride { mode, stride } => {
                write!(
                    f,
                    "mode {mode} has stride {stride}; flip the axis before converting, or use the integer layout"
                )
            }
            Self::OverlappingModes { mode, other, bit } if mode == other => {
                write!(
                    f,
                    "mode {mode} adds offsets that share bit {bit}, so sums carry; use the integer layout instead"
                )
            }
            Self::OverlappingModes { mode, other, bit } => {
                write!(
                    f,
                    "modes {mode} and {other} add offsets that share bit {bit}, so sums carry; use the integer \
                     layout instead"
                )
            }
            Self::OffsetOverflow { mode } => {
                write!(f, "offsets of mode {mode} don't fit in 63 bits; use a smaller stride or extent")
            }
            Self::SwizzleTooWide { swizzle, width } => write!(
                f,
                "{swizzle} needs offsets of {} bits, not {width}; widen the offset or choose a smaller swizzle",
                swizzle.period().ilog2()
            ),
            Self::StartsElsewhere { offset } => write!(
                f,
                "the swizzled layout starts at offset {offset}, a linear one starts at 0; move the start out of it"
            ),
            Self::Layout(error) => error.fmt(f),
            Self::ExtentMismatch { dim, found, expected } => {
                write!(
                    f,
                    "{dim} has extent {found} where {expected} is needed; slice or pad it to that extent"
                )
            }
            Self::BitCountMismatch { found, requested } => {
                write!(
                    f,
                    "{requested} bits requested for a side of {found} bits; the extents' products must agree"
                )
            }
            Self::UnsupportedFragment { instruction, reason } => write!(f, "{instruction}: {reason}"),
            Self::EmptyTile => f.write_str("a tile without elements lies nowhere"),
            Self::ElementNotHeld { dim, bit } => {
                write!(
                    f,
                    "target bit {bit} of {dim} selects elements that the source doesn't hold; use one tile"
                )
            }
            Self::ElementsNotReached { reached, bits } => {
                let (reached, all) = (1u64 << reached, 1u64 << bits);
                write!(
                    f,
                    "registers, lanes and warps lead to {reached} of the {all} elements of a piece; add bits that \
                     lead to the others"
                )
            }
            Self::BadAccess { reason } => f.write_str(reason),
        }
    }
}

impl core::error::Error for LinearError {}

/// The same refusal in the crate's one type, which a caller of both kinds of layouts has.
///
/// ```
/// use tile_layout::linear::LinearLayout;
/// use tile_layout::{ErrorKind, LayoutError};
/// fn bits(text: &str, stride: i64) -> Result<LinearLayout, LayoutError> {
///     let layout: tile_layout::Layout = text.parse()?;
///     Ok(LinearLayout::from_modes(&[(layout.size().unsigned_abs(), stride)])?)
/// }
/// let error = bits("4:1", 3).unwrap_err();
/// assert_eq!((error.kind(), error.modes()), (ErrorKind::NotInjective, &[0, 0][..]));
/// ```
impl From<LinearError> for LayoutError {
    fn from(error: LinearError) -> LayoutError {
        let (kind, modes): (_, &[usize]) = match &error {
            LinearError::Layout(error) => return error.clone(),
            LinearError::EmptyTile | LinearError::NotPowerOfTwo { .. } => (ErrorKind::InvalidExtent, &[]),
            LinearError::TooManyBits { .. } => (ErrorKind::Overflow, &[]),
            LinearError::OffsetOverflow { mode } => (ErrorKind::Overflow, &[*mode]),
            LinearError::ColumnOutOfRange { .. }
            | LinearError::IndexOutOfRange { .. }
            | LinearError::FlatIndexOutOfRange { .. } => (ErrorKind::OutOfBounds, &[]),
            LinearError::SizeMismatch { .. } | LinearError::BitCountMismatch { .. } => {
                (ErrorKind::SizeMismatch, &[])
            }
            LinearError::NotInvertible { .. } => (ErrorKind::NotInjective, &[]),
            LinearError::OverlappingModes { mode, other, .. } => (ErrorKind::NotInjective, &[*mode, *other]),
            LinearError::DuplicateDim { .. } => (ErrorKind::DuplicateAxis, &[]),
            LinearError::UnknownDim { .. }
            | LinearError::MissingDim { .. }
            | LinearError::UnmatchedDim { .. } => (ErrorKind::AxisOutOfRange, &[]),
            LinearError::NegativeStride { mode, .. } => (ErrorKind::NegativeStride, &[*mode]),
            LinearError::SwizzleTooWide { .. } => (ErrorKind::InvalidSwizzle, &[]),
            LinearError::ExtentMismatch { .. } => (ErrorKind::ShapeMismatch, &[]),
            LinearError::StartsElsewhere { .. }
            | LinearError::UnsupportedFragment { .. }
            | LinearError::ElementNotHeld { .. }
            | LinearError::ElementsNotReached { .. }
            | LinearError::BadAccess { .. } => (ErrorKind::Unsupported, &[]),
        };
        LayoutError::at(kind, modes, error.to_string())
    }
}

impl From<LayoutError> for LinearError {
    fn from(error: LayoutError) -> LinearError {
        LinearError::Layout(error)
    }
}
