//! Movements of tensors, as rules on extents, strides, offset and windows. Names and meanings are
//! those of `tile_layout::Movement`.

use super::Strided;
use super::requirement::{Requirement, Rule};
use crate::dim::Dim;
use crate::ops::infer::display_shape;
use crate::ops::{TypeError, documented};
use crate::types::{Shape, TensorType};
use std::fmt;

documented! {
/// A view of a tensor: how its index space is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorMovement {
    /// Axis `i` of the result is axis `order[i]`.
    Permute(Vec<usize>) = "permute",
    /// These axes backwards.
    Flip(Vec<usize>) = "flip",
    /// A range `(begin, end)` of each axis, which must lie inside.
    Shrink(Vec<(Dim, Dim)>) = "shrink",
    /// Indices without elements `(before, after)` each axis.
    Pad(Vec<(Dim, Dim)>) = "pad",
    /// Element `i` is element `i - by`; the extent stays, so that what is shifted out is lost and what comes in
    /// has no element.
    Shift {
        /// The axis.
        axis: usize,
        /// How far; negative moves elements to smaller indices.
        by: Dim,
    } = "shift",
    /// Every `step`-th index of an axis, from 0.
    Step {
        /// The axis.
        axis: usize,
        /// The distance.
        step: Dim,
    } = "step",
    /// Axes of extent 1 repeated; further axes may be added in front.
    Expand(Vec<Dim>) = "expand",
    /// A new axis of extent 1.
    Unsqueeze(usize) = "unsqueeze",
    /// Without an axis, which has extent 1.
    Squeeze(usize) = "squeeze",
    /// An axis as two, row-major.
    Unflatten {
        /// The axis.
        axis: usize,
        /// Their extents.
        extents: Vec<Dim>,
    } = "unflatten",
    /// Axes `start` to `end`, both included, as one.
    Flatten {
        /// The first.
        start: usize,
        /// The last.
        end: usize,
    } = "flatten",
    /// Windows of `size` elements, `step` apart: the axis counts windows, a new last axis the elements of one.
    Unfold {
        /// The axis.
        axis: usize,
        /// Elements of a window.
        size: Dim,
        /// From one window to the next.
        step: Dim,
    } = "unfold",
    /// Without an axis, at an index that is the op's second operand. An index outside the axis has no element.
    Select {
        /// The axis.
        axis: usize,
    } = "select",
    /// As it is, where this holds of sizes: what is asked by windows over a margin of it, which are no view.
    Require(Vec<Requirement>) = "require",
}
}

type Moved = Result<(TensorType, Vec<Requirement>), TypeError>;

impl TensorMovement {
    /// Its extents through a function.
    pub fn map(&self, f: &dyn Fn(&Dim) -> Dim) -> TensorMovement {
        let pairs = |pairs: &[(Dim, Dim)]| pairs.iter().map(|(a, b)| (f(a), f(b))).collect();
        let dims = |dims: &[Dim]| dims.iter().map(f).collect();
        match self {
            TensorMovement::Shrink(ranges) => TensorMovement::Shrink(pairs(ranges)),
            TensorMovement::Pad(padding) => TensorMovement::Pad(pairs(padding)),
            TensorMovement::Shift { axis, by } => TensorMovement::Shift { axis: *axis, by: f(by) },
            TensorMovement::Step { axis, step } => TensorMovement::Step { axis: *axis, step: f(step) },
            TensorMovement::Expand(extents) => TensorMovement::Expand(dims(extents)),
            TensorMovement::Unflatten { axis, extents } => {
                TensorMovement::Unflatten { axis: *axis, extents: dims(extents) }
            }
            TensorMovement::Unfold { axis, size, step } => {
                TensorMovement::Unfold { axis: *axis, size: f(size), step: f(step) }
            }
            TensorMovement::Require(requires) => {
                TensorMovement::Require(requires.iter().map(|requirement| requirement.map(f)).collect())
            }
            TensorMovement::Permute(_)
            | TensorMovement::Flip(_)
            | TensorMovement::Unsqueeze(_)
            | TensorMovement::Squeeze(_)
            | TensorMovement::Flatten { .. }
            | TensorMovement::Select { .. } => self.clone(),
        }
    }

    /// The movement of a tensor that has further axes of these extents in front, which stay as they are; `None` where it adds
    /// axes in front itself, or drops one at an index.
    pub(crate) fn behind(&self, front: &[Dim]) -> Option<TensorMovement> {
        let count = front.len();
        let moved = |axes: &[usize]| axes.iter().map(|axis| axis + count).collect::<Vec<_>>();
        let after = |whole: &dyn Fn(&Dim) -> (Dim, Dim), pairs: &[(Dim, Dim)]| {
            front.iter().map(whole).chain(pairs.iter().cloned()).collect()
        };
        Some(match self {
            TensorMovement::Permute(order) => {
                TensorMovement::Permute((0..count).chain(moved(order)).collect())
            }
            TensorMovement::Flip(axes) => TensorMovement::Flip(moved(axes)),
            TensorMovement::Shrink(ranges) => {
                TensorMovement::Shrink(after(&|extent| (Dim::from(0), extent.clone()), ranges))
            }
            TensorMovement::Pad(padding) => {
                TensorMovement::Pad(after(&|_| (Dim::from(0), Dim::from(0)), padding))
            }
            TensorMovement::Shift { axis, by } => {
                TensorMovement::Shift { axis: axis + count, by: by.clone() }
            }
            TensorMovement::Step { axis, step } => {
                TensorMovement::Step { axis: axis + count, step: step.clone() }
            }
            TensorMovement::Unsqueeze(axis) => TensorMovement::Unsqueeze(axis + count),
            TensorMovement::Squeeze(axis) => TensorMovement::Squeeze(axis + count),
            TensorMovement::Unflatten { axis, extents } => {
                TensorMovement::Unflatten { axis: axis + count, extents: extents.clone() }
            }
            TensorMovement::Flatten { start, end } => {
                TensorMovement::Flatten { start: start + count, end: end + count }
            }
            TensorMovement::Unfold { axis, size, step } => {
                TensorMovement::Unfold { axis: axis + count, size: size.clone(), step: step.clone() }
            }
            // What it asks of axes of windows doesn't change with those of the tensor beneath.
            TensorMovement::Require(_) => self.clone(),
            TensorMovement::Expand(_) | TensorMovement::Select { .. } => return None,
        })
    }

    /// The moved tensor, and what must hold for it.
    ///
    /// # Errors
    /// [`TypeError`] where the movement doesn't fit the tensor, or would let two indices of a tensor that is
    /// written share an element.
    pub fn apply(&self, tensor: &TensorType) -> Moved {
        if tensor.mutable && matches!(self, TensorMovement::Expand(_) | TensorMovement::Unfold { .. }) {
            let name = self.kind();
            return Err(TypeError::new(format!(
                "`{name}` gives one element several indices, so a tensor that is written can't be moved by it"
            ))
            .help("two blocks would write one element; write through a view whose elements are distinct"));
        }
        let mut draft =
            Draft { extents: tensor.extents.clone(), place: tensor.strided(), requires: Vec::new() };
        draft.apply(self)?;
        for requirement in &draft.requires {
            if requirement.decide() == Some(false) {
                return Err(TypeError::new(requirement.message("the tensor")));
            }
        }
        let requires = draft.requires.into_iter().filter(|requirement| requirement.decide().is_none());
        let layout = (draft.place != Strided::row_major(&draft.extents)).then(|| Box::new(draft.place));
        let moved = TensorType { extents: draft.extents, layout, ..tensor.clone() };
        Ok((moved, requires.collect()))
    }
}

/// A tensor while it is moved.
struct Draft {
    extents: Vec<Dim>,
    place: Strided,
    requires: Vec<Requirement>,
}

impl Draft {
    fn apply(&mut self, movement: &TensorMovement) -> Result<(), TypeError> {
        match movement {
            TensorMovement::Permute(order) => self.permute(order),
            TensorMovement::Flip(axes) => {
                if let Some(twice) = axes.iter().enumerate().find(|(i, axis)| axes[..*i].contains(axis)) {
                    return Err(TypeError::new(format!("`flip` names axis {} twice", twice.1)));
                }
                axes.iter().try_for_each(|&axis| self.flip(axis))
            }
            TensorMovement::Shrink(ranges) => {
                self.one_per_axis("shrink", "range", ranges.len())?;
                ranges.iter().enumerate().for_each(|(axis, (begin, end))| self.shrink(axis, begin, end));
                Ok(())
            }
            TensorMovement::Pad(padding) => {
                self.one_per_axis("pad", "pair", padding.len())?;
                for (axis, (before, after)) in padding.iter().enumerate() {
                    self.natural(axis, before);
                    self.natural(axis, after);
                    self.pad(axis, before, after);
                }
                Ok(())
            }
            TensorMovement::Shift { axis, by } => {
                self.axis("shift", *axis)?;
                let extent = self.extents[*axis].clone();
                self.pad(*axis, by, &-by.clone());
                self.extents[*axis] = extent;
                Ok(())
            }
            TensorMovement::Step { axis, step } => self.step(*axis, step),
            TensorMovement::Expand(extents) => self.expand(extents),
            TensorMovement::Unsqueeze(axis) => self.unsqueeze(*axis),
            TensorMovement::Squeeze(axis) => {
                self.axis("squeeze", *axis)?;
                self.whole("squeeze", *axis)?;
                self.requires.push(Requirement::new(*axis, Rule::One, self.extents[*axis].clone(), 1));
                self.remove("squeeze", *axis)
            }
            TensorMovement::Unflatten { axis, extents } => self.unflatten(*axis, extents),
            TensorMovement::Flatten { start, end } => self.flatten(*start, *end),
            TensorMovement::Unfold { axis, size, step } => self.unfold(*axis, size, step),
            TensorMovement::Select { axis } => {
                self.axis("select", *axis)?;
                self.remove("select", *axis)
            }
            TensorMovement::Require(requires) => {
                self.requires.extend(requires.iter().cloned());
                Ok(())
            }
        }
    }

    fn axis(&self, name: &str, axis: usize) -> Result<(), TypeError> {
        if axis < self.extents.len() {
            return Ok(());
        }
        Err(TypeError::new(format!(
            "axis {axis} of `{name}` is out of range: the tensor {} has rank {}",
            display_shape(&self.extents),
            self.extents.len()
        )))
    }

    fn one_per_axis(&self, name: &str, what: &str, given: usize) -> Result<(), TypeError> {
        if given == self.extents.len() {
            return Ok(());
        }
        let plural = if given == 1 { "" } else { "s" };
        Err(TypeError::new(format!(
            "`{name}` takes one {what} per axis: {given} {what}{plural} for the tensor {} of rank {}",
            display_shape(&self.extents),
            self.extents.len()
        )))
    }

    /// Refuses an axis with indices that have no element.
    fn whole(&self, name: &str, axis: usize) -> Result<(), TypeError> {
        if self.place.windows[axis].is_empty() {
            return Ok(());
        }
        Err(TypeError::new(format!(
            "`{name}` of axis {axis}, which `pad` or `shift` has given indices without elements, isn't one view"
        ))
        .help(match name {
            "unflatten" => "`unflatten` first, and pad or shift what it gives; `unfold` gives parts that the axis needn't \
                            divide into"
                .to_owned(),
            _ => format!("`{name}` first, and pad or shift what it gives"),
        }))
    }

    fn permute(&mut self, order: &[usize]) -> Result<(), TypeError> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.extents.len()) {
            return Err(TypeError::new(format!(
                "{order:?} is not a permutation of the axes of {}",
                display_shape(&self.extents)
            )));
        }
        self.extents = order.iter().map(|&axis| self.extents[axis].clone()).collect();
        self.place.strides = order.iter().map(|&axis| self.place.strides[axis].clone()).collect();
        self.place.windows = order.iter().map(|&axis| self.place.windows[axis].clone()).collect();
        Ok(())
    }

    fn flip(&mut self, axis: usize) -> Result<(), TypeError> {
        self.axis("flip", axis)?;
        let (extent, stride) = (self.extents[axis].clone(), self.place.strides[axis].clone());
        self.displace((extent.clone() - Dim::from(1)) * stride.clone());
        self.place.strides[axis] = -stride;
        for (begin, end) in &mut self.place.windows[axis] {
            (*begin, *end) = (extent.clone() - end.clone(), extent.clone() - begin.clone());
        }
        Ok(())
    }

    fn displace(&mut self, by: Dim) {
        self.place.offset = self.place.offset.clone() + by;
    }

    /// Arguments are counts: what might be negative by its form is checked.
    fn natural(&mut self, axis: usize, argument: &Dim) {
        self.requires.push(Requirement::new(axis, Rule::Natural, 0, argument.clone()));
    }

    fn shrink(&mut self, axis: usize, begin: &Dim, end: &Dim) {
        let extent = self.extents[axis].clone();
        self.natural(axis, begin);
        self.requires.push(Requirement::new(axis, Rule::Begin, begin.clone(), end.clone()));
        self.requires.push(Requirement::new(axis, Rule::End, end.clone(), extent));
        self.displace(begin.clone() * self.place.strides[axis].clone());
        self.extents[axis] = end.clone() - begin.clone();
        self.move_windows(axis, &-begin.clone());
    }

    fn pad(&mut self, axis: usize, before: &Dim, after: &Dim) {
        if *before == Dim::from(0) && *after == Dim::from(0) {
            return;
        }
        let extent = self.extents[axis].clone();
        self.displace(-(before.clone() * self.place.strides[axis].clone()));
        self.extents[axis] = extent.clone() + before.clone() + after.clone();
        self.move_windows(axis, before);
        self.place.windows[axis].push((before.clone(), before.clone() + extent));
    }

    fn move_windows(&mut self, axis: usize, by: &Dim) {
        for (begin, end) in &mut self.place.windows[axis] {
            (*begin, *end) = (begin.clone() + by.clone(), end.clone() + by.clone());
        }
    }

    fn step(&mut self, axis: usize, step: &Dim) -> Result<(), TypeError> {
        self.axis("step", axis)?;
        self.requires.push(Requirement::new(axis, Rule::Step, 1, step.clone()));
        self.extents[axis] = self.extents[axis].ceil_div(step);
        self.place.strides[axis] = self.place.strides[axis].clone() * step.clone();
        for (begin, end) in &mut self.place.windows[axis] {
            (*begin, *end) = (begin.ceil_div(step), end.ceil_div(step));
        }
        Ok(())
    }

    fn expand(&mut self, extents: &[Dim]) -> Result<(), TypeError> {
        let mismatch = |from: &[Dim]| {
            TypeError::new(format!(
                "shape {} can't be expanded to {}",
                display_shape(from),
                display_shape(extents)
            ))
            .help("axes must be equal or have the literal extent 1 in the signature; new axes stand in front")
        };
        let Some(added) = extents.len().checked_sub(self.extents.len()) else {
            return Err(mismatch(&self.extents));
        };
        for _ in 0..added {
            self.insert(0, Dim::from(1), Dim::from(0));
        }
        for (axis, extent) in extents.iter().enumerate() {
            if self.extents[axis] == *extent {
                continue;
            }
            if self.extents[axis].as_const() != Some(1) {
                return Err(mismatch(&self.extents[added..]));
            }
            self.whole("expand", axis)?;
            self.natural(axis, extent);
            self.extents[axis] = extent.clone();
            self.place.strides[axis] = Dim::from(0);
        }
        Ok(())
    }

    fn insert(&mut self, axis: usize, extent: Dim, stride: Dim) {
        self.extents.insert(axis, extent);
        self.place.strides.insert(axis, stride);
        self.place.windows.insert(axis, Vec::new());
    }

    fn unsqueeze(&mut self, axis: usize) -> Result<(), TypeError> {
        if axis > self.extents.len() {
            return self.axis("unsqueeze", axis);
        }
        // The stride that keeps a dense tensor dense.
        let stride = match self.extents.get(axis) {
            Some(next) => next.clone() * self.place.strides[axis].clone(),
            None => Dim::from(1),
        };
        self.insert(axis, Dim::from(1), stride);
        Ok(())
    }

    fn remove(&mut self, name: &str, axis: usize) -> Result<(), TypeError> {
        if self.extents.len() == 1 {
            return Err(TypeError::new(format!("`{name}` would leave a tensor without axes"))
                .help("a view keeps at least one axis; use `shrink` to keep it with extent 1"));
        }
        self.extents.remove(axis);
        self.place.strides.remove(axis);
        self.place.windows.remove(axis);
        Ok(())
    }

    fn unflatten(&mut self, axis: usize, extents: &[Dim]) -> Result<(), TypeError> {
        self.axis("unflatten", axis)?;
        self.whole("unflatten", axis)?;
        if extents.is_empty() {
            return Err(TypeError::new("`unflatten` needs at least one extent"));
        }
        let elements = extents.iter().cloned().fold(Dim::from(1), |a, b| a * b);
        self.requires.push(Requirement::new(axis, Rule::Elements, self.extents[axis].clone(), elements));
        extents.iter().for_each(|extent| self.natural(axis, extent));
        let mut stride = self.place.strides[axis].clone();
        self.extents.remove(axis);
        self.place.strides.remove(axis);
        self.place.windows.remove(axis);
        for extent in extents.iter().rev() {
            let outer = stride.clone() * extent.clone();
            self.insert(axis, extent.clone(), std::mem::replace(&mut stride, outer));
        }
        Ok(())
    }

    fn flatten(&mut self, start: usize, end: usize) -> Result<(), TypeError> {
        self.axis("flatten", start)?;
        self.axis("flatten", end)?;
        if start > end {
            return Err(TypeError::new(format!(
                "`flatten` of axes {start} to {end}: the first is the larger"
            )));
        }
        if start == end {
            return Ok(());
        }
        for axis in start..=end {
            self.whole("flatten", axis)?;
        }
        // An axis of one element takes no step, whatever its stride; those on its sides follow each other or don't.
        let long: Vec<usize> =
            (start..=end).filter(|&axis| self.extents[axis].as_const() != Some(1)).collect();
        for (&outer, &inner) in long.iter().zip(long.iter().skip(1)) {
            let step = self.extents[inner].clone() * self.place.strides[inner].clone();
            if self.place.strides[outer] != step {
                return Err(TypeError::new(format!(
                    "axes {outer} and {inner} of a view of shape {} and strides {} don't follow each other in memory, so \
                     they can't be one axis",
                    display_shape(&self.extents),
                    display_shape(&self.place.strides)
                ))
                .help("flatten before `permute`, `shrink`, `step` and `flip`, or reshape the tiles instead"));
            }
        }
        let merged = self.extents.drain(start..end).fold(Dim::from(1), |a, b| a * b);
        self.extents[start] = merged * self.extents[start].clone();
        let last = long.last().copied().unwrap_or(end);
        self.place.strides.swap(last, end);
        self.place.strides.drain(start..end);
        self.place.windows.drain(start..end);
        Ok(())
    }

    fn unfold(&mut self, axis: usize, size: &Dim, step: &Dim) -> Result<(), TypeError> {
        self.axis("unfold", axis)?;
        self.whole("unfold", axis)?;
        let (extent, stride) = (self.extents[axis].clone(), self.place.strides[axis].clone());
        self.natural(axis, size);
        self.requires.push(Requirement::new(axis, Rule::Window, size.clone(), extent.clone()));
        self.requires.push(Requirement::new(axis, Rule::Step, 1, step.clone()));
        self.extents[axis] = (extent - size.clone()).floor_div(step) + Dim::from(1);
        self.place.strides[axis] = stride.clone() * step.clone();
        self.insert(self.extents.len(), size.clone(), stride);
        Ok(())
    }
}

impl fmt::Display for TensorMovement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind();
        let pairs = |pairs: &[(Dim, Dim)]| {
            pairs.iter().map(|(a, b)| format!("({a}, {b})")).collect::<Vec<_>>().join(", ")
        };
        match self {
            TensorMovement::Permute(axes) | TensorMovement::Flip(axes) => write!(f, "{name} {axes:?}"),
            TensorMovement::Shrink(ranges) | TensorMovement::Pad(ranges) => {
                write!(f, "{name} [{}]", pairs(ranges))
            }
            TensorMovement::Shift { axis, by } => write!(f, "{name} {axis} by {by}"),
            TensorMovement::Step { axis, step } => write!(f, "{name} {axis} by {step}"),
            TensorMovement::Expand(extents) => write!(f, "{name} {}", Shape(extents)),
            TensorMovement::Unsqueeze(axis)
            | TensorMovement::Squeeze(axis)
            | TensorMovement::Select { axis } => {
                write!(f, "{name} {axis}")
            }
            TensorMovement::Unflatten { axis, extents } => {
                write!(f, "{name} {axis} {}", Shape(extents))
            }
            TensorMovement::Flatten { start, end } => write!(f, "{name} {start} to {end}"),
            TensorMovement::Unfold { axis, size, step } => write!(f, "{name} {axis} size {size} step {step}"),
            TensorMovement::Require(requires) => {
                let requires: Vec<String> = requires.iter().map(ToString::to_string).collect();
                write!(f, "{name} [{}]", requires.join(", "))
            }
        }
    }
}
