//! Arguments of movement operations: lengths, axes, ranges, paddings and sizes, resolved against a shape.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::tuple::{INLINE, IntTuple, Ints, product};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// A pair of numbers for an axis, or nothing: a range to keep, or the elements to add before and after.
///
/// ```
/// use tile_layout::{Movement, Span, View};
/// let middle: [Span; 2] = [None, Some((1, 3))];
/// assert_eq!(View::row_major(&[4, 4])?.shrink(&middle)?.shape(), [4, 2]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub type Span = Option<(i64, i64)>;

/// One extent of a new shape.
///
/// ```
/// use tile_layout::Length;
/// assert_eq!(Length::from(-1), Length::Infer);
/// assert_eq!(Length::from(Some(4)), Length::Is(4));
/// assert_eq!(Length::from(None::<i64>), Length::Keep);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many.
    Is(i64),
    /// As many as the old shape has at the same place.
    Keep,
    /// As many as are left.
    Infer,
}

impl From<i64> for Length {
    fn from(length: i64) -> Length {
        if length == -1 { Length::Infer } else { Length::Is(length) }
    }
}

impl From<i32> for Length {
    fn from(length: i32) -> Length {
        Length::from(i64::from(length))
    }
}

impl From<usize> for Length {
    fn from(length: usize) -> Length {
        // No tensor is as long as what doesn't fit.
        Length::Is(i64::try_from(length).unwrap_or(i64::MAX))
    }
}

impl<L: Into<Length>> From<Option<L>> for Length {
    fn from(length: Option<L>) -> Length {
        length.map_or(Length::Keep, Into::into)
    }
}

/// How [`crate::Movement::split`] cuts.
///
/// ```
/// use tile_layout::Split;
/// assert_eq!(Split::from(2), Split::Each(2));
/// assert_eq!(Split::from([1, 4]), Split::Sizes(vec![1, 4]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Pieces of one size, the last one smaller.
    Each(i64),
    /// Pieces of these sizes.
    Sizes(Vec<i64>),
}

impl From<i64> for Split {
    fn from(size: i64) -> Split {
        Split::Each(size)
    }
}

impl From<i32> for Split {
    fn from(size: i32) -> Split {
        Split::Each(size.into())
    }
}

impl<const N: usize> From<[i64; N]> for Split {
    fn from(sizes: [i64; N]) -> Split {
        Split::Sizes(sizes.into())
    }
}

impl From<Vec<i64>> for Split {
    fn from(sizes: Vec<i64>) -> Split {
        Split::Sizes(sizes)
    }
}

/// Axis `dim` of `rank`, negative ones counted from the end. A tensor of rank 0 has an axis 0 to name.
pub(crate) fn axis(dim: i64, rank: usize) -> Result<usize> {
    let count = rank.max(1) as i64;
    let place = if dim < 0 { dim.saturating_add(count) } else { dim };
    if (0..count).contains(&place) {
        return Ok(place as usize);
    }
    Err(LayoutError::new(
        ErrorKind::AxisOutOfRange,
        format!("axis {dim} is out of range: a tensor of {rank} axes has axes {} to {}", -count, count - 1),
    ))
}

/// Several axes, each named once.
pub(super) fn axes(dims: &[i64], rank: usize) -> Result<SmallVec<[usize; INLINE]>> {
    let places: SmallVec<[usize; INLINE]> = dims.iter().map(|&dim| axis(dim, rank)).collect::<Result<_>>()?;
    for (number, place) in places.iter().enumerate() {
        if places[..number].contains(place) {
            return Err(LayoutError::at(
                ErrorKind::DuplicateAxis,
                &[*place],
                format!("axis {place} is named more than once in {dims:?}"),
            ));
        }
    }
    Ok(places)
}

/// As many entries as axes.
pub(super) fn one_per_axis<T>(what: &str, given: &[T], shape: &[i64]) -> Result<()> {
    if given.len() == shape.len() {
        return Ok(());
    }
    Err(LayoutError::new(
        ErrorKind::Rank,
        format!("{} {what} for the {} axes of shape {}", given.len(), shape.len(), IntTuple::flat(shape)),
    ))
}

/// The shape that `lengths` ask for.
pub(super) fn resolve_shape(shape: &[i64], lengths: &[Length]) -> Result<Ints> {
    if lengths.iter().filter(|&&length| length == Length::Infer).count() > 1 {
        return Err(LayoutError::new(
            ErrorKind::AmbiguousExtent,
            format!("only one extent of {} can be inferred", print_lengths(lengths)),
        ));
    }
    let mut resolved = Ints::new();
    for (place, length) in lengths.iter().enumerate() {
        resolved.push(match length {
            Length::Infer => 1,
            Length::Is(extent) => check_extent(place, *extent)?,
            Length::Keep => *shape.get(place).ok_or_else(|| {
                LayoutError::new(
                    ErrorKind::AxisOutOfRange,
                    format!("shape {} has no axis {place} whose extent could be kept", IntTuple::flat(shape)),
                )
            })?,
        });
    }
    let size = product(shape)?;
    let known = product(&resolved)?;
    if let Some(place) = lengths.iter().position(|&length| length == Length::Infer) {
        if known == 0 {
            return Err(LayoutError::at(
                ErrorKind::InvalidExtent,
                &[place],
                format!("extent {place} of {} cannot be inferred beside a 0", print_lengths(lengths)),
            ));
        }
        resolved[place] = size / known;
    }
    if product(&resolved)? != size {
        return Err(LayoutError::new(
            ErrorKind::SizeMismatch,
            format!(
                "shape {} of {size} elements does not reshape to {}",
                IntTuple::flat(shape),
                print_lengths(lengths)
            ),
        ));
    }
    Ok(resolved)
}

pub(super) fn check_extent(place: usize, extent: i64) -> Result<i64> {
    if extent >= 0 {
        return Ok(extent);
    }
    // A plain -1 became `Length::Infer` on its way here.
    let next = match extent {
        -1 => "what -1 stands for is Length::Infer",
        _ => "only -1 has a meaning",
    };
    Err(LayoutError::at(
        ErrorKind::InvalidExtent,
        &[place],
        format!("extent {extent} at place {place} is negative; {next}"),
    ))
}

/// How often an axis is repeated.
pub(super) fn check_count(axis: usize, count: i64) -> Result<()> {
    if count >= 0 {
        return Ok(());
    }
    Err(LayoutError::at(
        ErrorKind::InvalidExtent,
        &[axis],
        format!("count {count} of axis {axis} is negative; pass 0 or more"),
    ))
}

pub(super) fn print_lengths(lengths: &[Length]) -> alloc::string::String {
    let word = |length: &Length| match length {
        Length::Is(extent) => format!("{extent}"),
        Length::Keep => "_".into(),
        Length::Infer => "-1".into(),
    };
    format!("({})", lengths.iter().map(word).collect::<Vec<_>>().join(","))
}

/// The flat form of a padding: `(left, right, top, bottom, …)`, pairs from the last axis backwards. Axes without
/// a pair get none.
///
/// # Errors
/// [`ErrorKind::InvalidPadding`] for an odd number, [`ErrorKind::Rank`] for more pairs than axes.
///
/// ```
/// use tile_layout::flat_padding;
/// assert_eq!(flat_padding(&[1, 2], 2)?, [None, Some((1, 2))]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub fn flat_padding(padding: &[i64], rank: usize) -> Result<Vec<Span>> {
    if !padding.len().is_multiple_of(2) {
        return Err(LayoutError::new(
            ErrorKind::InvalidPadding,
            format!("flat padding comes in pairs, {} numbers are none", padding.len()),
        ));
    }
    if padding.len() > 2 * rank {
        return Err(LayoutError::new(
            ErrorKind::Rank,
            format!("flat padding has {} pairs for {rank} axes", padding.len() / 2),
        ));
    }
    let mut grouped = vec![None; rank];
    for (pair, place) in padding.chunks_exact(2).zip((0..rank).rev()) {
        grouped[place] = Some((pair[0], pair[1]));
    }
    Ok(grouped)
}

/// Padding as pairs, one for each axis of `shape`.
pub(crate) fn check_grouped_padding(shape: &[i64], padding: &[Span]) -> Result<Vec<(i64, i64)>> {
    one_per_axis("paddings", padding, shape)?;
    Ok(padding.iter().map(|pair| pair.unwrap_or((0, 0))).collect())
}

/// Sizes that cover an axis; `None` is the axis that a tensor of rank 0 does not have.
pub(super) fn split_sizes(extent: Option<i64>, split: Split) -> Result<Vec<i64>> {
    let Some(extent) = extent else {
        return Err(LayoutError::new(ErrorKind::AxisOutOfRange, "a tensor without axes cannot be split"));
    };
    match split {
        Split::Each(size) if size < 1 => Err(LayoutError::new(
            ErrorKind::InvalidExtent,
            format!("pieces must have 1 element or more, not {size}"),
        )),
        Split::Each(_) if extent == 0 => Ok(vec![0]),
        Split::Each(size) => {
            check_parts((extent - 1) / size + 1)?;
            let starts = (0..(extent - 1) / size + 1).map(|piece| piece * size);
            Ok(starts.map(|start| size.min(extent - start)).collect())
        }
        Split::Sizes(sizes) => {
            let sum = sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size));
            if sum != Some(extent) || sizes.iter().any(|&size| size < 0) {
                return Err(LayoutError::new(
                    ErrorKind::SizeMismatch,
                    format!("pieces of {sizes:?} elements do not add up to {extent}"),
                ));
            }
            Ok(sizes)
        }
    }
}

/// The number of parts that one call makes, if it is one that a list can hold.
pub(crate) fn check_parts(count: i64) -> Result<usize> {
    const MOST: i64 = 1 << 20;
    match usize::try_from(count) {
        Ok(parts) if count <= MOST => Ok(parts),
        _ => Err(LayoutError::new(
            ErrorKind::InvalidExtent,
            format!(
                "{count} parts are more than the {MOST} that a list may have; take single parts by their range"
            ),
        )),
    }
}

pub(super) fn chunks(extent: Option<i64>, count: i64) -> Result<Split> {
    if count < 1 {
        return Err(LayoutError::new(
            ErrorKind::InvalidExtent,
            format!("an axis is cut into 1 chunk or more, not {count}"),
        ));
    }
    match extent {
        Some(0) => check_parts(count).map(|count| Split::Sizes(vec![0; count])),
        Some(extent) => Ok(Split::Each((extent - 1) / count + 1)),
        None => Ok(Split::Each(1)),
    }
}
