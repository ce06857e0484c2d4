//! What an operation says when it refuses: the kind, for programs; what is wrong with the values and which
//! modes are meant, for people; and what to do instead.
//!
//! Every function of the crate that a caller can misuse returns this one type. It is one pointer wide, so that
//! the results of the small, hot operations stay small.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The result of an operation on layouts or views.
///
/// ```
/// fn elements(text: &str) -> tile_layout::Result<i64> {
///     Ok(text.parse::<tile_layout::Layout>()?.size())
/// }
/// assert_eq!(elements("(4,8):(8,1)"), Ok(32));
/// ```
pub type Result<T> = core::result::Result<T, LayoutError>;

/// Why an operation was refused.
///
/// ```
/// use tile_layout::{ErrorKind, Layout};
/// let rows: Layout = "(5,4):(1,10)".parse()?;
/// let pairs: Layout = "6:2".parse()?;
/// let error = rows.compose(&pairs).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotComposable);
/// assert_eq!(error.modes(), [0]);
/// assert_eq!(
///     error.to_string(),
///     "mode 0 (6:2) of 6:2 does not compose with (5,4):(1,10): past a boundary, which comes after 3 steps, \
///      it goes on unevenly"
/// );
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct LayoutError(Box<Refusal>);

#[derive(Clone, PartialEq, Eq)]
struct Refusal {
    kind: ErrorKind,
    modes: Vec<usize>,
    message: String,
}

/// The class of a [`LayoutError`]: what a program can decide on.
///
/// ```
/// use tile_layout::{ErrorKind, Layout};
/// assert_eq!(Layout::leaf(-1, 0).map_err(|error| error.kind()), Err(ErrorKind::InvalidExtent));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Text that is not a layout, a tuple or a formula.
    Syntax,
    /// Two tuples that should nest alike do not, or the number of modes, axes, lengths or indices is wrong.
    Rank,
    /// An extent, a factor, a count or a step that has no meaning there (negative, zero where it divides).
    InvalidExtent,
    /// A size or an offset exceeds 2^62.
    Overflow,
    /// A coordinate or an index lies outside its extent or its index space.
    OutOfBounds,
    /// The composition is not a layout of the right operand's shape, or it takes too many elements to tell.
    NotComposable,
    /// The layout overlaps itself or leaves gaps that no layout fills.
    NotComplementable,
    /// Two elements share an offset where each needs its own.
    NotInjective,
    /// An extent or a stride is not a multiple of what it is divided by.
    NotDivisible,
    /// A negative stride where only offsets upward have a meaning.
    NegativeStride,
    /// No mode has stride 1, so there is no place for the smaller elements.
    NoUnitStride,
    /// Swizzle parameters out of range.
    InvalidSwizzle,
    /// The number of elements differs.
    SizeMismatch,
    /// More than one extent is left to be inferred.
    AmbiguousExtent,
    /// An axis is not one of the tensor's.
    AxisOutOfRange,
    /// An axis is named twice, or an order is not a permutation.
    DuplicateAxis,
    /// Shapes that should agree or broadcast do not.
    ShapeMismatch,
    /// A range leaves its axis or runs backwards.
    InvalidRange,
    /// Padding that the mode cannot take.
    InvalidPadding,
    /// An index list with two ellipses, or a step of zero.
    InvalidIndex,
    /// A formula whose brackets, names or sizes do not fit.
    InvalidFormula,
    /// A run-time fact that is needed was neither given nor proved.
    Unproved,
    /// A symbol has no value.
    Unbound,
    /// Facts about run-time values that no values satisfy.
    Contradiction,
    /// A layout that the descriptor cannot check.
    AbstractLayout,
    /// Strides that let two elements of a matrix overlap.
    OverlappingStrides,
    /// The operation has no meaning on a masked, swizzled or vectorised view.
    Unsupported,
}

impl LayoutError {
    /// A refusal that concerns no single mode.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> LayoutError {
        LayoutError::at(kind, &[], message)
    }

    /// A refusal that concerns `modes`: positions among the top-level modes, axes or leaves, as the message says.
    pub(crate) fn at(kind: ErrorKind, modes: &[usize], message: impl Into<String>) -> LayoutError {
        LayoutError(Box::new(Refusal { kind, modes: modes.to_vec(), message: message.into() }))
    }

    /// The class.
    ///
    /// ```
    /// use tile_layout::{ErrorKind, Layout};
    /// let error = "(4,8:1".parse::<Layout>().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Syntax);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Which modes or axes the message names, counted from 0; empty where the whole layout is meant.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let error = View::row_major(&[4, 6])?.shrink(&[None, Some((2, 9))]).unwrap_err();
    /// assert_eq!(error.modes(), [1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn modes(&self) -> &[usize] {
        &self.0.modes
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl core::error::Error for LayoutError {}
