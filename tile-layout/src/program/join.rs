//! Programs side by side along an axis: made by cat, stack and roll, taken apart by what looks through them.

use super::{Body, Element, ViewProgram};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Mode, Modes};
use crate::movement::{Movement, axis};
use crate::tuple::{IntTuple, Ints, product};
use crate::view::compose::{Along, Group, Walk};
use crate::view::{Fill, View, Windows};
use alloc::format;
use alloc::vec::Vec;

impl ViewProgram {
    /// Tensors one after the other along an axis. Pieces that continue each other in memory stay one view.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`], [`ErrorKind::ShapeMismatch`] where ranks or the other extents differ,
    /// [`ErrorKind::Rank`] for no tensor at all.
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// let whole = ViewProgram::row_major(0, &[4, 2])?;
    /// let pieces = whole.split(1, 0)?;
    /// assert_eq!(ViewProgram::cat(&pieces, 0)?, whole);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn cat(tensors: &[ViewProgram], dim: i64) -> Result<ViewProgram> {
        let Some(first) = tensors.first() else {
            return Err(LayoutError::new(ErrorKind::Rank, "nothing to put together"));
        };
        let place = axis(dim, first.shape.len())?;
        for (number, tensor) in tensors.iter().enumerate() {
            let others = |shape: &[i64]| {
                let mut shape = shape.to_vec();
                if place < shape.len() {
                    shape.remove(place);
                }
                shape
            };
            let alike =
                tensor.shape.len() == first.shape.len() && others(&tensor.shape) == others(&first.shape);
            if !alike || tensor.shape.is_empty() {
                return Err(LayoutError::at(
                    ErrorKind::ShapeMismatch,
                    &[number],
                    format!(
                        "tensor {number} of shape {} does not stand beside one of shape {} along axis {place}",
                        IntTuple::flat(&tensor.shape),
                        IntTuple::flat(&first.shape)
                    ),
                ));
            }
        }
        joined(place, tensors)
    }

    /// Tensors of one shape along a new axis, which may be the last.
    ///
    /// # Errors
    /// As [`ViewProgram::cat`].
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// let rows = [ViewProgram::row_major(0, &[3])?, ViewProgram::row_major(1, &[3])?];
    /// assert_eq!(ViewProgram::stack(&rows, 1)?.evaluate(&[&[1, 2, 3], &[4, 5, 6]], |_| 0)?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn stack(tensors: &[ViewProgram], dim: i64) -> Result<ViewProgram> {
        let unequal =
            |tensor: &&ViewProgram| tensors.first().is_some_and(|first| first.shape != tensor.shape);
        if let Some(other) = tensors.iter().find(unequal) {
            return Err(LayoutError::new(
                ErrorKind::ShapeMismatch,
                format!("a tensor of shape {} cannot be stacked on the others", IntTuple::flat(&other.shape)),
            ));
        }
        let slices: Vec<ViewProgram> =
            tensors.iter().map(|tensor| tensor.unsqueeze(dim)).collect::<Result<_>>()?;
        let place = tensors.first().map_or(0, |tensor| tensor.shape.len() + 1);
        ViewProgram::cat(&slices, axis(dim, place)? as i64)
    }

    /// Elements moved along axes, those that leave at one end coming back at the other: `shifts[k]` along
    /// `dims[k]`, to higher indices where positive. Without axes the flattened tensor rolls. An axis named twice
    /// rolls by its last shift.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where shifts and axes differ in number, [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// let rows = ViewProgram::row_major(0, &[2, 2])?;
    /// assert_eq!(rows.roll(&[1], &[])?.evaluate(&[&[1, 2, 3, 4]], |_| 0)?, [4, 1, 2, 3]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn roll(&self, shifts: &[i64], dims: &[i64]) -> Result<ViewProgram> {
        if let (&[shift], []) = (shifts, dims) {
            return self.flatten(0, -1)?.roll(&[shift], &[0])?.reshape(self.shape.iter().copied());
        }
        if shifts.len() != dims.len() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("{} shifts for {} axes", shifts.len(), dims.len()),
            ));
        }
        let mut by_axis: Vec<Option<i64>> = self.shape.iter().map(|_| None).collect();
        for (&shift, &dim) in shifts.iter().zip(dims) {
            if let Some(own) = by_axis.get_mut(axis(dim, self.shape.len())?) {
                *own = Some(shift);
            }
        }
        let mut rolled = self.clone();
        for (place, shift) in by_axis.into_iter().enumerate() {
            let extent = self.shape[place];
            let cut = match shift {
                Some(shift) if extent > 0 => (extent - shift.rem_euclid(extent)) % extent,
                _ => 0,
            };
            let mut ranges = alloc::vec![None; self.shape.len()];
            ranges[place] = Some((cut, extent));
            let front = rolled.shrink(&ranges)?;
            ranges[place] = Some((0, cut));
            rolled = joined(place, &[front, rolled.shrink(&ranges)?])?;
        }
        Ok(rolled)
    }
}

/// The element of a join at an index inside its shape.
pub(super) fn at(axis: usize, parts: &[ViewProgram], index: &[i64]) -> Element {
    let mut index = Ints::from_slice(index);
    for part in parts {
        if index[axis] < part.shape[axis] {
            return part.at(&index);
        }
        index[axis] -= part.shape[axis];
    }
    // The parts cover the shape.
    Element::Fill(Fill::ZERO)
}

/// Parts side by side in the simplest form: nested joins opened, empty parts left out, neighbours merged.
pub(super) fn joined(axis: usize, parts: &[ViewProgram]) -> Result<ViewProgram> {
    let mut simple: Vec<ViewProgram> = Vec::new();
    let opened = parts.iter().flat_map(|part| match &part.body {
        Body::Join { axis: own, parts } if *own == axis => &parts[..],
        _ => core::slice::from_ref(part),
    });
    for part in opened.filter(|part| part.shape[axis] > 0) {
        match simple.last().and_then(|last| merge(axis, last, part)) {
            Some(merged) => {
                simple.pop();
                simple.push(merged);
            }
            None => simple.push(part.clone()),
        }
    }
    match (&simple[..], parts) {
        ([], [first, ..]) => Ok(first.clone()),
        ([only], _) => Ok(only.clone()),
        _ => {
            let mut shape = simple[0].shape.clone();
            shape[axis] = simple
                .iter()
                .try_fold(0i64, |sum, part| sum.checked_add(part.shape[axis]))
                .ok_or_else(|| LayoutError::new(ErrorKind::Overflow, "the joined axis exceeds 2^62"))?;
            product(&shape)?;
            Ok(ViewProgram { shape, body: Body::Join { axis, parts: simple } })
        }
    }
}

/// Two views side by side as one view, where the second continues the first.
fn merge(axis: usize, first: &ViewProgram, second: &ViewProgram) -> Option<ViewProgram> {
    let ((first_source, a), (second_source, b)) = (first.as_view()?, second.as_view()?);
    let (a_extent, b_extent) = (first.shape[axis], second.shape[axis]);
    let mut extents = first.shape.clone();
    extents[axis] = a_extent.checked_add(b_extent)?;
    let fill = match (a.is_masked(), b.is_masked()) {
        (true, true) if a.fill() != b.fill() => return None,
        (true, _) => a.fill(),
        (false, _) => b.fill(),
    };
    if a.is_nothing() && b.is_nothing() {
        return View::filled(&extents, fill).ok().map(|view| ViewProgram::new(first_source, view));
    }
    // Beside a piece that is all fill, the other one is padded.
    if a.is_nothing() || b.is_nothing() {
        let (source, view, shift) =
            if b.is_nothing() { (first_source, a, 0) } else { (second_source, b, a_extent) };
        let mut windows = Windows::from_slice(view.windows());
        windows[axis] = (windows[axis].0 + shift, windows[axis].1 + shift);
        return whole(source, view, extents, windows, None, axis, fill);
    }
    let same_memory = first_source == second_source && a.is_plain() && b.is_plain();
    let others_alike = (0..extents.len())
        .filter(|&place| place != axis)
        .all(|place| a.windows()[place] == b.windows()[place] && a.axes().nth(place) == b.axes().nth(place));
    let ((a_low, a_high), (b_low, b_high)) = (a.windows()[axis], b.windows()[axis]);
    if !same_memory || !others_alike || a_high != a_extent || b_low != 0 {
        return None;
    }
    let (a_length, distance) = (a_high - a_low, b.offset().checked_sub(a.offset())?);
    if distance % a_length != 0 {
        return None;
    }
    let stride = distance / a_length;
    let continues = |view: &View, length: i64| {
        length == 1 || view.axes().nth(axis) == Some(&[Mode { extent: length, stride }][..])
    };
    if !continues(a, a_length) || !continues(b, b_high) {
        return None;
    }
    let mut windows = Windows::from_slice(a.windows());
    windows[axis] = (a_low, a_extent + b_high);
    whole(first_source, a, extents, windows, Some(Mode { extent: a_length + b_high, stride }), axis, fill)
}

/// `view` with other extents and windows, and another mode on one axis.
fn whole(
    source: usize,
    view: &View,
    extents: Ints,
    windows: Windows,
    mode: Option<Mode>,
    axis: usize,
    fill: Fill,
) -> Option<ViewProgram> {
    let mut modes: Vec<Modes> = view.axes().map(Modes::from_slice).collect();
    if let Some(mode) = mode {
        modes[axis] = Modes::from_slice(&[mode]);
    }
    let modes = modes.iter().map(Modes::as_slice);
    let joined = View::assemble(extents, windows, modes, view.offset(), fill).ok()?;
    Some(ViewProgram::new(source, joined.with_memory_of(view)))
}

/// A join seen through a map: a join along the map's axis on which the joined coordinate moves, or one part of it
/// where it does not. `None` where the map goes across parts in another way.
pub(super) fn through(
    map: &View,
    shape: &[i64],
    axis: usize,
    parts: &[ViewProgram],
) -> Result<Option<ViewProgram>> {
    let unit = product(&shape[axis + 1..])?;
    let whole = product(&shape[axis..])?;
    let outside = product(shape)?.checked_div(whole).unwrap_or(1);
    // Faster axes, the joined one, slower axes.
    let groups = [Group::axis(unit, 1), Group::axis(shape[axis], unit), Group::axis(outside, whole)];
    let mut walk = Walk::new(map);
    if walk.split_between(&groups).is_none() {
        return Ok(None);
    }
    let reach: i64 = walk.steps.iter().map(|step| (step.extent - 1) * groups[1].digit(step.position)).sum();
    let first = groups[1].digit(walk.start);
    let spans = parts.iter().scan(0, |begin, part| {
        let span = (*begin, *begin + part.shape[axis]);
        *begin = span.1;
        Some((span, part))
    });
    let touched = spans.filter(|((begin, end), _)| *begin <= first + reach && first < *end);
    let translate = |view: &View, begin: i64, part: &ViewProgram| -> Result<Option<ViewProgram>> {
        match into_part(view, &groups, begin, part.shape[axis]) {
            Some(map) => part.seen_through(&map).map(Some),
            None => Ok(None),
        }
    };
    let touched: Vec<_> = touched.collect();
    if let [((begin, _), part)] = touched[..] {
        return translate(map, begin, part);
    }
    let Some(along) = walk.moving_axis(&groups[1]) else { return Ok(None) };
    let Some(digit) = Along::new(&walk, &groups[1], along) else { return Ok(None) };
    let (low, high) = map.windows()[along];
    let mut pieces = Vec::new();
    for ((begin, end), part) in touched {
        let (from, to) = digit.between(begin, end, high - low);
        if from < to {
            let Some(cut) = cut(map, along, from, to, high - low) else { return Ok(None) };
            let Some(piece) = translate(&cut, begin, part)? else { return Ok(None) };
            pieces.push((from, piece));
        }
    }
    pieces.sort_by_key(|(from, _)| *from);
    let pieces: Vec<ViewProgram> = pieces.into_iter().map(|(_, piece)| piece).collect();
    joined(along, &pieces).map(Some)
}

/// The part of a map from `from` to `to` on an axis, counted in its window of `length`; what lies outside the
/// window goes with the first and the last part.
fn cut(map: &View, axis: usize, from: i64, to: i64, length: i64) -> Option<View> {
    let part = map.restrict(axis, from, to)?;
    let (low, high) = map.windows()[axis];
    let extent = map.shape()[axis];
    let before = if from == 0 { low } else { 0 };
    let after = if to == length { extent - high } else { 0 };
    let mut extents = Ints::from_slice(map.shape());
    extents[axis] = before + (to - from) + after;
    let mut windows = Windows::from_slice(part.windows());
    windows[axis] = (before, before + to - from);
    View::assemble(extents, windows, part.axes(), part.offset(), map.fill()).ok()
}

/// A map of positions of the whole as a map of positions of the part that begins at `begin` and is `extent` long,
/// on whose indices alone it lands.
fn into_part(map: &View, groups: &[Group; 3], begin: i64, extent: i64) -> Option<View> {
    let mut walk = Walk::new(map);
    walk.split_between(groups)?;
    let [faster, joined, slower] = groups;
    let place = |position: i64, begin: i64| {
        let along = joined.digit(position) - begin;
        (slower.digit(position) * extent + along) * joined.unit + faster.digit(position)
    };
    let mut modes: Vec<Modes> = map.axes().map(|_| Modes::new()).collect();
    let mut offset = place(walk.start, begin);
    for step in &walk.steps {
        let stride = place(step.position, 0);
        if step.flipped {
            offset += (step.extent - 1) * stride;
        }
        modes[step.axis].push(Mode::new(step.extent, if step.flipped { -stride } else { stride }));
    }
    View::assemble(
        Ints::from_slice(map.shape()),
        Windows::from_slice(map.windows()),
        modes.iter().map(Modes::as_slice),
        offset,
        map.fill(),
    )
    .ok()
}
