//! Indexing: a list of integers, slices, new axes, ellipses and tables, taken apart into a map and a table.

use super::arguments::{axis, one_per_axis};
use super::maps::{Pick, pick};
use super::table::{Table, room};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::tuple::{INLINE, IntTuple, product};
use crate::view::{View, unravel};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use smallvec::SmallVec;

/// One entry of an index list.
///
/// ```
/// use tile_layout::{Index, Movement, View};
/// let view = View::row_major(&[4, 6, 8])?;
/// let index = [Index::from(1..3), Index::Ellipsis, Index::NewAxis, Index::slice(None, None, 2)];
/// assert_eq!(view.index(&index)?.shape(), [2, 6, 1, 4]);
/// assert_eq!(view.index(&[Index::from(1..=2), Index::from(-2..=-1)])?.shape(), [2, 2, 8]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// One element, negative ones counted from the end; the axis goes.
    At(i64),
    /// A slice with the rules of Python: bounds are clipped, a negative step runs backwards.
    Slice {
        /// The first index, if not the end that the step begins at.
        start: Option<i64>,
        /// The first index left out, if not the other end.
        stop: Option<i64>,
        /// The distance between two indices; 1 where missing.
        step: Option<i64>,
    },
    /// A new axis of extent 1.
    NewAxis,
    /// All axes that no other entry names.
    Ellipsis,
    /// The elements that a table of integers names, negative ones counted from the end; 0 where an entry lies outside of the
    /// axis.
    Table {
        /// The table's shape.
        shape: Vec<i64>,
        /// Its entries in row-major order.
        entries: Vec<i64>,
    },
}

impl Index {
    /// The slice `start:stop:step`.
    ///
    /// ```
    /// use tile_layout::{Index, Movement, View};
    /// let odd = View::row_major(&[7])?.index(&[Index::slice(1, None, 2)])?;
    /// assert_eq!((odd.shape(), odd.offset()), (&[3][..], 1));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn slice(
        start: impl Into<Option<i64>>,
        stop: impl Into<Option<i64>>,
        step: impl Into<Option<i64>>,
    ) -> Index {
        Index::Slice { start: start.into(), stop: stop.into(), step: step.into() }
    }

    /// The elements in a list, in its order.
    ///
    /// ```
    /// use tile_layout::{Index, Movement, View};
    /// let picked = View::row_major(&[7])?.index(&[Index::list(&[6, 3, 0])])?;
    /// assert_eq!(picked.strides(), Some(vec![-3]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn list(entries: &[i64]) -> Index {
        Index::Table { shape: vec![entries.len() as i64], entries: entries.to_vec() }
    }

    fn takes_axis(&self) -> bool {
        !matches!(self, Index::NewAxis | Index::Ellipsis)
    }
}

/// Numbers and ranges of every type that positions are counted in. A number that no axis reaches stays one.
macro_rules! from_numbers {
    ($($number:ty),*) => { $(
        impl From<$number> for Index {
            fn from(index: $number) -> Index {
                Index::At(i64::try_from(index).unwrap_or(i64::MAX))
            }
        }

        impl From<Range<$number>> for Index {
            fn from(range: Range<$number>) -> Index {
                let at = |bound: $number| i64::try_from(bound).unwrap_or(i64::MAX);
                Index::slice(at(range.start), at(range.end), None)
            }
        }

        impl From<RangeFrom<$number>> for Index {
            fn from(range: RangeFrom<$number>) -> Index {
                Index::slice(i64::try_from(range.start).unwrap_or(i64::MAX), None, None)
            }
        }

        impl From<RangeTo<$number>> for Index {
            fn from(range: RangeTo<$number>) -> Index {
                Index::slice(None, i64::try_from(range.end).unwrap_or(i64::MAX), None)
            }
        }

        impl From<RangeInclusive<$number>> for Index {
            fn from(range: RangeInclusive<$number>) -> Index {
                let at = |bound: $number| i64::try_from(bound).unwrap_or(i64::MAX);
                Index::slice(at(*range.start()), behind(at(*range.end())), None)
            }
        }

        impl From<RangeToInclusive<$number>> for Index {
            fn from(range: RangeToInclusive<$number>) -> Index {
                Index::slice(None, behind(i64::try_from(range.end).unwrap_or(i64::MAX)), None)
            }
        }
    )* };
}

from_numbers!(i32, i64, usize);

/// The first index left out behind the last one: none behind −1, which is the axis's last.
fn behind(last: i64) -> Option<i64> {
    (last != -1).then(|| last.saturating_add(1))
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::slice(None, None, None)
    }
}

/// An index list in two: a map, and tables for some axes of what the map makes.
pub(super) struct Lowered {
    pub(super) map: View,
    tables: Vec<AxisTable>,
}

struct AxisTable {
    axis: usize,
    shape: Vec<i64>,
    entries: Vec<i64>,
}

pub(super) fn lower(shape: &[i64], indices: &[Index]) -> Result<Lowered> {
    let taken = indices.iter().filter(|index| index.takes_axis()).count();
    let ellipses = indices.iter().filter(|&index| *index == Index::Ellipsis).count();
    if ellipses > 1 {
        return Err(LayoutError::new(
            ErrorKind::InvalidIndex,
            format!("an index has one ellipsis, not {ellipses}"),
        ));
    }
    let Some(unnamed) = shape.len().checked_sub(taken) else {
        return Err(LayoutError::new(
            ErrorKind::Rank,
            format!("{taken} indices for the {} axes of shape {}", shape.len(), IntTuple::flat(shape)),
        ));
    };
    let mut picks: SmallVec<[Pick; INLINE]> = SmallVec::new();
    let mut tables = Vec::new();
    let (mut place, mut result_axis) = (0, 0);
    let implied = (ellipses == 0).then_some(&Index::Ellipsis);
    for index in indices.iter().chain(implied) {
        let extent = shape.get(place).copied().unwrap_or(1);
        let picked = match index {
            Index::NewAxis => Pick::New,
            Index::At(at) => Pick::At(wrap(*at, extent, place)?),
            Index::Slice { start, stop, step } => slice(*start, *stop, step.unwrap_or(1), extent, place)?,
            Index::Table { shape, entries } => {
                check_table(shape, entries)?;
                tables.push(AxisTable { axis: result_axis, shape: shape.clone(), entries: entries.clone() });
                Pick::All
            }
            Index::Ellipsis => {
                picks.extend((0..unnamed).map(|_| Pick::All));
                (place, result_axis) = (place + unnamed, result_axis + unnamed);
                continue;
            }
        };
        place += usize::from(index.takes_axis());
        result_axis += usize::from(!matches!(picked, Pick::At(_)));
        picks.push(picked);
    }
    Ok(Lowered { map: pick(shape, &picks)?, tables })
}

fn wrap(index: i64, extent: i64, place: usize) -> Result<i64> {
    let wrapped = if index < 0 { index.saturating_add(extent) } else { index };
    if (0..extent).contains(&wrapped) {
        return Ok(wrapped);
    }
    Err(LayoutError::at(
        ErrorKind::OutOfBounds,
        &[place],
        format!("index {index} is out of bounds for axis {place} of extent {extent}"),
    ))
}

/// Python's `slice.indices`.
fn slice(start: Option<i64>, stop: Option<i64>, step: i64, extent: i64, place: usize) -> Result<Pick> {
    if step == 0 {
        return Err(LayoutError::at(
            ErrorKind::InvalidIndex,
            &[place],
            format!("the slice of axis {place} has step 0"),
        ));
    }
    let (least, most) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clip = |bound: i64| {
        let counted = if bound < 0 { bound.saturating_add(extent) } else { bound };
        counted.clamp(least, most)
    };
    let (first, last) = if step > 0 { (0, extent) } else { (extent - 1, -1) };
    let (start, stop) = (start.map_or(first, clip), stop.map_or(last, clip));
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = if distance > 0 { (distance - 1) / step.saturating_abs() + 1 } else { 0 };
    // A step past the end of a single element is not taken.
    Ok(Pick::Slice { start, count, step: if count > 1 { step } else { 1 } })
}

fn check_table(shape: &[i64], entries: &[i64]) -> Result<()> {
    if product(shape)? == entries.len() as i64 {
        return Ok(());
    }
    Err(LayoutError::new(
        ErrorKind::SizeMismatch,
        format!("a table of shape {} has not {} entries", IntTuple::flat(shape), entries.len()),
    ))
}

impl Lowered {
    /// The positions that the tables pick, `shape` being what the map makes; `None` where there are no tables.
    pub(super) fn table(&self, shape: &[i64]) -> Result<Option<Table>> {
        let [first, .., last] = &self.tables[..] else {
            return match &self.tables[..] {
                [only] => self.table_between(shape, only.axis, only.axis).map(Some),
                _ => Ok(None),
            };
        };
        self.table_between(shape, first.axis, last.axis).map(Some)
    }

    fn table_between(&self, shape: &[i64], first: usize, last: usize) -> Result<Table> {
        let picked = broadcast(self.tables.iter().map(|table| &table.shape[..]))?;
        let is_picked = |axis: usize| self.tables.iter().any(|table| table.axis == axis);
        let kept: Vec<usize> = (0..shape.len()).filter(|&axis| !is_picked(axis)).collect();
        // Neighbouring tables stay in place, separated ones move to the front.
        let neighbours = last - first + 1 == self.tables.len();
        let before = if neighbours { first } else { 0 };
        let mut result: Vec<i64> = kept.iter().map(|&axis| shape[axis]).collect();
        result.splice(before..before, picked.iter().copied());
        let mut positions = room(&result)?;
        for place in 0..product(&result)? {
            let index = unravel(&result, place);
            let picked_index = &index[before..before + picked.len()];
            let mut coordinate = vec![Some(0); shape.len()];
            let kept_index = index[..before].iter().chain(&index[before + picked.len()..]);
            for (&axis, &at) in kept.iter().zip(kept_index) {
                coordinate[axis] = Some(at);
            }
            for table in &self.tables {
                coordinate[table.axis] = table.entry(picked_index, shape[table.axis]);
            }
            positions.push(position(shape, &coordinate));
        }
        Table::new(&result, positions)
    }
}

impl AxisTable {
    /// The index that stands at a place of the broadcast tables; `None` where it lies outside the axis.
    fn entry(&self, picked_index: &[i64], extent: i64) -> Option<i64> {
        let missing = picked_index.len() - self.shape.len();
        let at = self.shape.iter().zip(&picked_index[missing..]);
        let place = at.fold(0, |place, (&extent, &at)| place * extent + if extent == 1 { 0 } else { at });
        let entry = self.entries[place as usize];
        let wrapped = if entry < 0 { entry.saturating_add(extent) } else { entry };
        (0..extent).contains(&wrapped).then_some(wrapped)
    }
}

fn position(shape: &[i64], coordinate: &[Option<i64>]) -> Option<i64> {
    shape.iter().zip(coordinate).try_fold(0, |position, (&extent, at)| Some(position * extent + (*at)?))
}

/// The common shape of shapes aligned at their last axes.
fn broadcast<'a>(shapes: impl Iterator<Item = &'a [i64]>) -> Result<Vec<i64>> {
    let mut common: Vec<i64> = Vec::new();
    for shape in shapes {
        let added = shape.len().saturating_sub(common.len());
        common.splice(0..0, shape[..added].iter().copied());
        let overlap = common.len() - shape.len();
        for (own, &extent) in common[overlap..].iter_mut().zip(shape) {
            match (*own, extent) {
                (a, b) if a == b => {}
                (1, b) => *own = b,
                (_, 1) => {}
                (a, b) => {
                    return Err(LayoutError::new(
                        ErrorKind::ShapeMismatch,
                        format!("index tables do not broadcast: {a} entries beside {b}"),
                    ));
                }
            }
        }
    }
    Ok(common)
}

/// The positions that [`crate::Movement::gather`] picks.
pub(super) fn gather(shape: &[i64], dim: i64, table_shape: &[i64], entries: &[i64]) -> Result<Table> {
    one_per_axis("axes of the table", table_shape, shape)?;
    check_table(table_shape, entries)?;
    let along = axis(dim, shape.len())?;
    let longer = |place: usize| place != along && table_shape[place] > shape[place];
    if let Some(place) = (0..shape.len()).find(|&place| longer(place)) {
        return Err(LayoutError::at(
            ErrorKind::ShapeMismatch,
            &[place],
            format!(
                "the table has {} entries along axis {place}, the tensor {} elements",
                table_shape[place], shape[place]
            ),
        ));
    }
    let pick = |(place, &entry): (usize, &i64)| {
        let index = unravel(table_shape, place as i64);
        let mut coordinate: Vec<Option<i64>> = index.iter().map(|&at| Some(at)).collect();
        if let Some(at) = coordinate.get_mut(along) {
            *at = (0..shape[along]).contains(&entry).then_some(entry);
        }
        position(shape, &coordinate)
    };
    Table::new(table_shape, entries.iter().enumerate().map(pick).collect())
}
