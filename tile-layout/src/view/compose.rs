//! Views of views: the one view that a view of another view is, where there is one.
//!
//! The offsets of the outer view count through the elements of the inner one in row-major order. Reading such a
//! position as an index of the inner view is reading digits; where the outer view's steps never carry between
//! digits (see [`crate::algebra::Carries`]) the result is a view again. It goes in four steps:
//!
//! 1. axes of the inner view are joined into *groups*, as far as their windows join into one interval;
//! 2. the outer steps are split at the boundaries between groups;
//! 3. windows of groups are pulled back to windows of outer axes;
//! 4. the outer steps are split at the boundaries inside each group's layout, and get its strides.
//!
//! Every movement operation is a view of positions composed with what it moves, so this file decides for all of
//! them whether one view is enough.

use super::{Fill, View, Windows};
use crate::algebra::{Carries, Digits};
use crate::layout::{Mode, Modes};
use crate::tuple::{INLINE, Ints};
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Neighbouring axes whose valid positions are one interval.
pub(crate) struct Group {
    /// Positions, valid or not.
    pub(crate) extent: i64,
    /// Positions of all faster groups together: the size of one step here.
    pub(crate) unit: i64,
    low: i64,
    high: i64,
    /// The layout of the valid positions.
    modes: Modes,
}

/// One leaf of the outer view, or a piece of one.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) axis: usize,
    pub(crate) extent: i64,
    /// How far one step goes among the inner view's positions; never negative.
    pub(crate) position: i64,
    /// Whether the leaf's own stride is negative: it is counted from its other end.
    pub(crate) flipped: bool,
    /// The stride in memory, once it is known.
    stride: i64,
}

/// The steps of an outer view and where they start.
pub(crate) struct Walk {
    pub(crate) start: i64,
    /// Those of one axis after those of the one before.
    pub(crate) steps: SmallVec<[Step; INLINE]>,
}

impl View {
    /// The view of `inner` that `self` is, `self` counting through the elements of `inner` in row-major order.
    /// `None` where one view does not hold it.
    pub(crate) fn compose(&self, inner: &View) -> Option<View> {
        if !self.is_plain() {
            return None;
        }
        if self.is_nothing() {
            return Some(self.clone().with_memory_of(inner));
        }
        // Said before groups are asked: without axes there is none whose window could be empty.
        if inner.is_nothing() {
            return self.all_filled_by(inner);
        }
        // The positions of contiguous elements are their offsets, counted from the first.
        if inner.is_contiguous() {
            return self.shifted(inner.parts.offset);
        }
        // Joining masked axes helps where the outer view walks across them, and hides which outer axis moves
        // along which inner one where it does not: try the finest groups first. Without a mask all are the same.
        let joinings: &[Joining] = match inner.is_masked() {
            true => &[Joining::Full, Joining::Partial, Joining::Single],
            false => &[Joining::Full],
        };
        joinings
            .iter()
            .find_map(|&joining| self.compose_groups(inner, &groups(inner, joining)))
            .map(|view| view.with_memory_of(inner))
    }

    /// The view of `inner` that `self` is where it meets no element of it.
    fn all_filled_by(&self, inner: &View) -> Option<View> {
        let filled = View::filled(&self.parts.extents, joint_fill(self, inner.parts.fill)?).ok()?;
        Some(filled.with_memory_of(inner))
    }

    fn compose_groups(&self, inner: &View, groups: &[Group]) -> Option<View> {
        // The outer view, where it is less than all of `self`.
        let mut restricted: Option<View> = None;
        let mut walk = Walk::new(self);
        walk.split_between(groups)?;
        let mut inner_fills = false;
        for group in groups.iter().filter(|group| !group.is_full()) {
            let outer = restricted.as_ref().unwrap_or(self);
            match walk.pull_back(group, outer)? {
                Valid::Everywhere => {}
                Valid::Nowhere => return self.all_filled_by(inner),
                Valid::Within { axis, low, high } => {
                    inner_fills = true;
                    let outer = outer.restrict(axis, low, high)?;
                    walk = Walk::new(&outer);
                    walk.split_between(groups)?;
                    restricted = Some(outer);
                }
            }
        }
        let fill = if inner_fills { joint_fill(self, inner.parts.fill)? } else { self.parts.fill };
        let mut offset = inner.parts.offset;
        for group in groups {
            offset = offset.checked_add(walk.enter(group)?)?;
        }
        walk.assemble(restricted.as_ref().unwrap_or(self), offset, fill)
    }

    /// The part of the window between `low` and `high` on an axis, counted from the window's begin; the shape
    /// stays.
    pub(crate) fn restrict(&self, axis: usize, low: i64, high: i64) -> Option<View> {
        let mut modes: Vec<Modes> = self.axes().map(Modes::from_slice).collect();
        let (skipped, kept) = restrict_modes(&modes[axis], low, high)?;
        modes[axis] = kept;
        let mut windows = self.parts.windows.clone();
        windows[axis] = (windows[axis].0 + low, windows[axis].0 + high);
        let view = View::assemble(
            self.parts.extents.clone(),
            windows,
            modes.iter().map(Modes::as_slice),
            self.parts.offset.checked_add(skipped)?,
            self.parts.fill,
        );
        view.ok().map(|view| view.with_memory_of(self))
    }
}

/// The fill of a view that fills on its own account and on that of the view below.
fn joint_fill(outer: &View, inner: Fill) -> Option<Fill> {
    (!outer.is_masked() || outer.parts.fill == inner).then_some(inner)
}

/// Positions `low..high` of modes, the first fastest: the offset of the first, and the modes; `None` where they
/// are no box.
fn restrict_modes(modes: &[Mode], low: i64, high: i64) -> Option<(i64, Modes)> {
    let Some((&first, slower)) = modes.split_first() else { return Some((0, Modes::new())) };
    if slower.is_empty() {
        return Some((low * first.stride, Modes::from_slice(&[Mode::new(high - low, first.stride)])));
    }
    if low % first.extent == 0 && high % first.extent == 0 {
        let (skipped, mut kept) = restrict_modes(slower, low / first.extent, high / first.extent)?;
        kept.insert(0, first);
        return Some((skipped, kept));
    }
    let (row, last_row) = (low / first.extent, (high - 1) / first.extent);
    if row != last_row {
        return None;
    }
    let (skipped, _) = restrict_modes(slower, row, row + 1)?;
    let skipped = skipped + low % first.extent * first.stride;
    Some((skipped, Modes::from_slice(&[Mode::new(high - low, first.stride)])))
}

/// Which neighbouring axes become one group, each kind including those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Joining {
    /// Axes without a mask.
    Full,
    /// An axis with a mask and faster ones without.
    Partial,
    /// An axis of which one index is valid and a faster one with a mask.
    Single,
}

/// The axes of a view, the last first, joined as far as `joining` and their windows allow.
fn groups(view: &View, joining: Joining) -> SmallVec<[Group; 2]> {
    let mut groups: SmallVec<[Group; 2]> = SmallVec::new();
    let axes: SmallVec<[&[Mode]; INLINE]> = view.axes().collect();
    for axis in (0..view.rank()).rev() {
        let (extent, (low, high)) = (view.parts.extents[axis], view.parts.windows[axis]);
        match groups.last_mut() {
            Some(group) if group.is_full() && (joining >= Joining::Partial || (low, high) == (0, extent)) => {
                (group.low, group.high) = (low * group.extent, high * group.extent);
                group.modes.extend_from_slice(axes[axis]);
                group.extent *= extent;
            }
            Some(group) if joining == Joining::Single && high - low == 1 => {
                (group.low, group.high) = (low * group.extent + group.low, low * group.extent + group.high);
                group.extent *= extent;
            }
            last => {
                let unit = last.map_or(1, |group| group.unit * group.extent);
                groups.push(Group { extent, unit, low, high, modes: Modes::from_slice(axes[axis]) });
            }
        }
    }
    groups
}

impl Group {
    /// Positions of one axis of `extent`, `unit` apart: for those who need digits only.
    pub(crate) fn axis(extent: i64, unit: i64) -> Group {
        Group { extent, unit, low: 0, high: extent, modes: Modes::new() }
    }

    fn is_full(&self) -> bool {
        self.low == 0 && self.high == self.extent
    }

    /// The digit of a position that counts in this group.
    pub(crate) fn digit(&self, position: i64) -> i64 {
        position / self.unit % self.extent.max(1)
    }
}

/// Where outer indices land in the window of a group.
enum Valid {
    Everywhere,
    Nowhere,
    /// On one axis, between two indices counted from its window's begin.
    Within {
        axis: usize,
        low: i64,
        high: i64,
    },
}

impl Walk {
    pub(crate) fn new(outer: &View) -> Walk {
        let mut walk = Walk { start: outer.parts.offset, steps: SmallVec::new() };
        for (axis, modes) in outer.axes().enumerate() {
            for &Mode { extent, stride } in modes.iter().filter(|mode| mode.extent > 1) {
                if stride < 0 {
                    walk.start += (extent - 1) * stride;
                }
                let position = stride.abs();
                walk.steps.push(Step { axis, extent, position, flipped: stride < 0, stride: 0 });
            }
        }
        walk
    }

    /// Split the steps so that no digit of a group carries into the next.
    pub(crate) fn split_between(&mut self, groups: &[Group]) -> Option<()> {
        let boundaries: Ints = groups.iter().skip(1).map(|group| group.unit).collect();
        self.split(&boundaries, self.start, |step| step.position)
    }

    /// Split each step into pieces that never carry over `boundaries`, where `size` says how far it goes.
    fn split(&mut self, boundaries: &[i64], start: i64, size: impl Fn(&Step) -> i64) -> Option<()> {
        if boundaries.is_empty() {
            return Some(());
        }
        let mut carries = Carries::new(boundaries, start);
        let mut pieces: SmallVec<[Step; INLINE]> = SmallVec::new();
        for &step in &self.steps {
            let mut rest = step;
            while rest.extent > 1 {
                let even = match size(&rest) {
                    0 => rest.extent,
                    size => carries.count(rest.extent, size)?,
                };
                pieces.push(Step { extent: even, ..rest });
                rest.extent /= even;
                // Read again only while steps are left, and then within reach.
                rest.position = rest.position.wrapping_mul(even);
                rest.stride = rest.stride.wrapping_mul(even);
            }
        }
        self.steps = pieces;
        Some(())
    }

    /// Which outer indices land in the window of `group`; `None` where they are no window of outer axes.
    fn pull_back(&self, group: &Group, outer: &View) -> Option<Valid> {
        let first = group.digit(self.start);
        let reach: i64 = self.steps.iter().map(|step| (step.extent - 1) * group.digit(step.position)).sum();
        if group.low <= first && first + reach < group.high {
            return Some(Valid::Everywhere);
        }
        if first + reach < group.low || first >= group.high {
            return Some(Valid::Nowhere);
        }
        let axis = self.moving_axis(group)?;
        let along = Along::new(self, group, axis)?;
        let length = outer.parts.windows[axis].1 - outer.parts.windows[axis].0;
        let (low, high) = along.between(group.low, group.high, length);
        Some(if low >= high { Valid::Nowhere } else { Valid::Within { axis, low, high } })
    }

    /// The only outer axis along which the digit of `group` changes.
    pub(crate) fn moving_axis(&self, group: &Group) -> Option<usize> {
        let mut moving =
            self.steps.iter().filter(|step| group.digit(step.position) != 0).map(|step| step.axis);
        let axis = moving.next()?;
        moving.all(|other| other == axis).then_some(axis)
    }

    /// Follow the steps into the layout of a group: the offset of the start, with each step's stride added.
    fn enter(&mut self, group: &Group) -> Option<i64> {
        let digits = Digits::new(&group.modes);
        let start = group.digit(self.start) - group.low;
        self.split(digits.boundaries(), start, |step| group.digit(step.position))?;
        for step in &mut self.steps {
            step.stride = step.stride.checked_add(digits.offset(group.digit(step.position))?)?;
        }
        digits.offset(start)
    }

    fn assemble(&self, outer: &View, mut offset: i64, fill: Fill) -> Option<View> {
        let mut modes = Modes::new();
        for step in &self.steps {
            let stride = if step.flipped { -step.stride } else { step.stride };
            if step.flipped {
                offset = offset.checked_add(step.stride.checked_mul(step.extent - 1)?)?;
            }
            modes.push(Mode::new(step.extent, stride));
        }
        let mut rest = (&self.steps[..], &modes[..]);
        let axes = (0..outer.rank()).map(|axis| {
            let (steps, modes) = rest;
            let own = steps.iter().take_while(|step| step.axis == axis).count();
            rest = (&steps[own..], &modes[own..]);
            &modes[..own]
        });
        let (extents, windows) =
            (Ints::from_slice(&outer.parts.extents), Windows::from_slice(&outer.parts.windows));
        View::assemble(extents, windows, axes, offset, fill).ok()
    }
}

/// The digit of a group along one outer axis, as a function of the index counted from the window's begin. It
/// only rises or only falls.
pub(crate) struct Along {
    first: i64,
    modes: Modes,
    falls: bool,
}

impl Along {
    /// `None` where the digit rises and falls.
    pub(crate) fn new(walk: &Walk, group: &Group, axis: usize) -> Option<Along> {
        let mut first = group.digit(walk.start);
        let mut modes = Modes::new();
        for step in walk.steps.iter().filter(|step| step.axis == axis) {
            let digit = group.digit(step.position);
            if step.flipped {
                first += digit * (step.extent - 1);
            }
            modes.push(Mode::new(step.extent, if step.flipped { -digit } else { digit }));
        }
        let steady = |sign: i64| {
            let mut below = 0;
            modes.iter().all(|mode| {
                let rises = mode.stride * sign >= below;
                below += mode.stride * sign * (mode.extent - 1);
                rises
            })
        };
        match (steady(1), steady(-1)) {
            (true, _) => Some(Along { first, modes, falls: false }),
            (_, true) => Some(Along { first, modes, falls: true }),
            _ => None,
        }
    }

    fn at(&self, index: i64) -> i64 {
        let part = crate::layout::Part { modes: &self.modes, tokens: &[] };
        self.first + crate::evaluate::at_index(part, index)
    }

    /// The indices of `0..length` whose digit lies in `low..high`, as an interval.
    pub(crate) fn between(&self, low: i64, high: i64, length: i64) -> (i64, i64) {
        if self.falls {
            (self.first_where(length, |digit| digit < high), self.first_where(length, |digit| digit < low))
        } else {
            (self.first_where(length, |digit| digit >= low), self.first_where(length, |digit| digit >= high))
        }
    }

    /// The first index from which on the condition holds.
    fn first_where(&self, length: i64, holds: impl Fn(i64) -> bool) -> i64 {
        let (mut from, mut to) = (0, length);
        while from < to {
            let middle = from + (to - from) / 2;
            if holds(self.at(middle)) { to = middle } else { from = middle + 1 }
        }
        from
    }
}
