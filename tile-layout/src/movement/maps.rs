//! The affine movement operations as maps: views of the positions of the old tensor with the new shape.
//!
//! Nothing here knows what a position stands for.

use super::arguments::{
    Length, Span, axes, axis, check_count, check_extent, check_grouped_padding, one_per_axis, print_lengths,
};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Mode;
use crate::tuple::{IntTuple, Ints, product};
use crate::view::{Fill, View, Windows};
use alloc::format;
use smallvec::{SmallVec, smallvec};

/// One axis of a map.
#[derive(Clone)]
struct Axis {
    extent: i64,
    /// Which indices name a position.
    window: (i64, i64),
    /// Positions inside the window, counted from its begin. One mode, or two where they repeat.
    modes: SmallVec<[Mode; 2]>,
}

/// Axes, on the stack for most tensors.
type Axes = SmallVec<[Axis; 4]>;

impl Axis {
    fn strided(extent: i64, stride: i64) -> Axis {
        Axis { extent, window: (0, extent), modes: smallvec![Mode::new(extent, stride)] }
    }

    fn stride(&self) -> i64 {
        self.modes[0].stride
    }
}

/// The map under construction: it starts as the identity of a shape.
struct Map {
    axes: Axes,
    offset: i64,
    fill: Fill,
}

impl Map {
    fn identity(shape: &[i64]) -> Result<Map> {
        product(shape)?;
        let mut stride = 1i64;
        let mut axes: Axes = shape
            .iter()
            .rev()
            .map(|&extent| {
                let axis = Axis::strided(extent, stride);
                // Beside an empty axis no position is ever read.
                stride = stride.saturating_mul(extent.max(1));
                axis
            })
            .collect();
        axes.reverse();
        Ok(Map { axes, offset: 0, fill: Fill::ZERO })
    }

    fn finish(&self) -> Result<View> {
        let extents: Ints = self.axes.iter().map(|axis| axis.extent).collect();
        let windows: Windows = self.axes.iter().map(|axis| axis.window).collect();
        let modes = self.axes.iter().map(|axis| axis.modes.as_slice());
        View::assemble(extents, windows, modes, self.offset, self.fill)
    }

    /// Keep `begin..end` of an axis.
    fn cut(&mut self, place: usize, begin: i64, end: i64) {
        let stride = self.axes[place].stride();
        self.offset = self.offset.saturating_add(begin.saturating_mul(stride));
        self.axes[place] = Axis::strided(end - begin, stride);
    }
}

/// The identity of another shape of as many elements.
pub(super) fn reshape(lengths: &[i64]) -> Result<View> {
    Map::identity(lengths)?.finish()
}

pub(super) fn expand(shape: &[i64], lengths: &[Length]) -> Result<View> {
    let mismatch = |places: &[usize]| {
        let (from, to) = (IntTuple::flat(shape), print_lengths(lengths));
        LayoutError::at(ErrorKind::ShapeMismatch, places, format!("shape {from} does not expand to {to}"))
    };
    let added = lengths.len().saturating_sub(shape.len());
    let short = shape.len().saturating_sub(lengths.len());
    let mut map = Map::identity(shape)?;
    for _ in 0..added {
        map.axes.insert(0, Axis::strided(1, 0));
    }
    for (place, old) in map.axes.iter_mut().enumerate() {
        let length = place.checked_sub(short).map_or(Length::Is(1), |place| lengths[place]);
        let extent = match length {
            Length::Is(extent) => check_extent(place, extent)?,
            Length::Keep | Length::Infer => old.extent,
        };
        if extent != old.extent {
            if old.extent != 1 {
                return Err(mismatch(&[place]));
            }
            *old = Axis::strided(extent, 0);
        }
    }
    map.finish()
}

pub(super) fn permute(shape: &[i64], order: &[i64]) -> Result<View> {
    let places = axes(order, shape.len())?;
    if places.len() != shape.len() {
        return Err(LayoutError::new(
            ErrorKind::DuplicateAxis,
            format!("{order:?} does not name each of the {} axes once", shape.len()),
        ));
    }
    let mut map = Map::identity(shape)?;
    map.axes = places.into_iter().map(|place| map.axes[place].clone()).collect();
    map.finish()
}

pub(super) fn flip(shape: &[i64], dims: &[i64]) -> Result<View> {
    let mut map = Map::identity(shape)?;
    for place in axes(dims, shape.len())? {
        // A tensor of rank 0 has an axis to name, but none to turn.
        if let Some(axis) = map.axes.get_mut(place) {
            let (extent, stride) = (axis.extent, axis.stride());
            map.offset += (extent - 1).max(0) * stride;
            *axis = Axis::strided(extent, -stride);
        }
    }
    map.finish()
}

pub(super) fn shrink(shape: &[i64], ranges: &[Span]) -> Result<View> {
    one_per_axis("ranges", ranges, shape)?;
    let mut map = Map::identity(shape)?;
    for (place, (range, &extent)) in ranges.iter().zip(shape).enumerate() {
        let (begin, end) = range.unwrap_or((0, extent));
        if begin < 0 || begin > end || end > extent {
            return Err(LayoutError::at(
                ErrorKind::InvalidRange,
                &[place],
                format!("range {begin}..{end} of axis {place} does not lie in 0..{extent}"),
            ));
        }
        map.cut(place, begin, end);
    }
    map.finish()
}

pub(super) fn pad(shape: &[i64], padding: &[Span], fill: Fill) -> Result<View> {
    let padding = check_grouped_padding(shape, padding)?;
    let mut map = Map::identity(shape)?;
    map.fill = fill;
    for (place, (&(before, after), &extent)) in padding.iter().zip(shape).enumerate() {
        let invalid = |why: &str| {
            LayoutError::at(
                ErrorKind::InvalidPadding,
                &[place],
                format!("padding ({before},{after}) of axis {place} of extent {extent} {why}"),
            )
        };
        let (begin, end) = (before.min(0).saturating_neg(), extent.saturating_add(after.min(0)));
        if begin > end {
            return Err(invalid("removes more than there is"));
        }
        map.cut(place, begin, end);
        let (before, after) = (before.max(0), after.max(0));
        let inside = end - begin;
        let extent = inside.checked_add(before).and_then(|sum| sum.checked_add(after));
        map.axes[place].extent = extent.ok_or_else(|| invalid("exceeds 2^62"))?;
        map.axes[place].window = (before, before + inside);
    }
    map.finish()
}

pub(super) fn diagonal(shape: &[i64], offset: i64, first: i64, second: i64) -> Result<View> {
    let places = axes(&[first, second], shape.len())?;
    let mut map = Map::identity(shape)?;
    let (&[first, second], true) = (&places[..], shape.len() > 1) else {
        return Err(LayoutError::new(ErrorKind::AxisOutOfRange, "a diagonal needs two axes"));
    };
    let (rows, columns) = (shape[first], shape[second]);
    let (skipped_rows, skipped_columns) = (offset.min(0).saturating_neg(), offset.max(0));
    if skipped_rows > rows || skipped_columns > columns {
        return Err(LayoutError::at(
            ErrorKind::InvalidRange,
            &[first, second],
            format!("diagonal {offset} lies beyond axes of {rows} and {columns} elements"),
        ));
    }
    map.cut(first, skipped_rows, rows);
    map.cut(second, skipped_columns, columns);
    let (row, column) = (map.axes[first].clone(), map.axes[second].clone());
    let kept = map.axes.iter().enumerate().filter(|&(place, _)| place != first && place != second);
    let mut axes: Axes = kept.map(|(_, axis)| axis.clone()).collect();
    axes.push(Axis::strided(row.extent.min(column.extent), row.stride().saturating_add(column.stride())));
    map.axes = axes;
    map.finish()
}

pub(super) fn unfold(shape: &[i64], dim: i64, size: i64, step: i64) -> Result<View> {
    let place = axis(dim, shape.len())?;
    let mut map = Map::identity(shape)?;
    let Some(whole) = map.axes.get(place).cloned() else {
        return Err(LayoutError::new(ErrorKind::AxisOutOfRange, "a tensor without axes cannot be unfolded"));
    };
    if size < 0 || size > whole.extent || step < 1 {
        return Err(LayoutError::at(
            ErrorKind::InvalidExtent,
            &[place],
            format!(
                "windows of {size} elements, {step} apart, do not fit axis {place} of {}: the size must lie in \
                 0..={}, the step be 1 or more",
                whole.extent, whole.extent
            ),
        ));
    }
    let windows = (whole.extent - size) / step + 1;
    map.axes[place] = Axis::strided(windows, whole.stride().saturating_mul(step));
    map.axes.push(Axis::strided(size, whole.stride()));
    map.finish()
}

pub(super) fn repeat(shape: &[i64], counts: &[i64]) -> Result<View> {
    let Some(added) = counts.len().checked_sub(shape.len()) else {
        return Err(LayoutError::new(
            ErrorKind::SizeMismatch,
            format!(
                "{} counts for the {} axes of shape {}",
                counts.len(),
                shape.len(),
                IntTuple::flat(shape)
            ),
        ));
    };
    let mut map = Map::identity(shape)?;
    for _ in 0..added {
        map.axes.insert(0, Axis::strided(1, 0));
    }
    for (place, (axis, &count)) in map.axes.iter_mut().zip(counts).enumerate() {
        let own = axis.modes[0];
        *axis = repeated(place, count, &[own, Mode::new(count, 0)])?;
    }
    map.finish()
}

pub(super) fn repeat_interleave(shape: &[i64], count: i64, dim: i64) -> Result<View> {
    let place = axis(dim, shape.len())?;
    let mut map = Map::identity(shape)?;
    let Some(whole) = map.axes.get_mut(place) else {
        return Err(LayoutError::new(
            ErrorKind::AxisOutOfRange,
            "a tensor without axes cannot be repeated along one",
        ));
    };
    let own = whole.modes[0];
    *whole = repeated(place, count, &[Mode::new(count, 0), own])?;
    map.finish()
}

/// An axis that goes through the same positions `count` times.
fn repeated(place: usize, count: i64, modes: &[Mode]) -> Result<Axis> {
    check_count(place, count)?;
    let extents: Ints = modes.iter().map(|mode| mode.extent).collect();
    let extent = product(&extents)?;
    Ok(Axis { extent, window: (0, extent), modes: SmallVec::from_slice(modes) })
}

/// Indices `start, start + step, …` of an axis, `extent` of them, existing or not.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) start: i64,
    pub(crate) extent: i64,
    pub(crate) step: i64,
}

/// One run of indices per axis, masked where it leaves the axis.
pub(crate) fn runs(shape: &[i64], runs: &[Run], fill: Fill) -> Result<View> {
    let mut map = Map::identity(shape)?;
    map.fill = fill;
    let Map { axes, offset, .. } = &mut map;
    for (axis, run) in axes.iter_mut().zip(runs) {
        let stride = axis.stride();
        let inside = (axis.extent - 1).saturating_sub(run.start);
        let own = if inside < 0 { 0 } else { (inside / run.step + 1).min(run.extent) };
        if own > 0 {
            *offset = offset.saturating_add(run.start.saturating_mul(stride));
        }
        let modes = smallvec![Mode::new(own, stride.saturating_mul(run.step))];
        *axis = Axis { extent: run.extent, window: (0, own), modes };
    }
    map.finish()
}

/// What basic indexing does with one axis of the result.
pub(super) enum Pick {
    /// The axis itself.
    All,
    /// One element; the axis goes.
    At(i64),
    /// `count` elements from `start`, `step` apart.
    Slice { start: i64, count: i64, step: i64 },
    /// No axis of the old shape: a new one of extent 1.
    New,
}

pub(super) fn pick(shape: &[i64], picks: &[Pick]) -> Result<View> {
    let mut map = Map::identity(shape)?;
    let mut old = core::mem::take(&mut map.axes).into_iter();
    for pick in picks {
        let axis = match pick {
            Pick::New => Some(Axis::strided(1, 0)),
            Pick::All => old.next(),
            Pick::At(index) => {
                map.offset += old.next().map_or(0, |axis| index * axis.stride());
                None
            }
            Pick::Slice { start, count, step } => old.next().map(|axis| {
                map.offset += if *count > 0 { start * axis.stride() } else { 0 };
                Axis::strided(*count, axis.stride().saturating_mul(*step))
            }),
        };
        map.axes.extend(axis);
    }
    map.finish()
}
