//! Views: a tensor as a window onto memory.
//!
//! A view has a shape, and inside it, along each axis, a window of valid indices. Inside the windows an index has
//! an offset in memory; outside it reads a fill value. The offsets come from a [`Layout`] with one mode per axis,
//! counted from the window's first index. A mode may be a tuple: `(3,2):(1,0)` repeats three elements twice along
//! one axis, which no single stride can. Axes are in row-major order wherever they are counted through; the modes
//! inside an axis run first mode fastest, as in every layout.
//!
//! A swizzle may permute the offsets at the very end, and an element layout may make each element a small
//! vector.
//!
//! Invariants: the layout has one mode per axis, as large as the window; windows lie inside the shape; a view
//! with an empty window anywhere has empty windows everywhere; all offsets stay within 2^62; the number of
//! elements does too.

pub(crate) mod compose;
mod distribute;
mod fill;
mod tensor;

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode};
use crate::swizzle::Swizzle;
use crate::tuple::{INLINE, IntTuple, Ints, LIMIT, product};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use smallvec::SmallVec;

pub use distribute::Threads;
pub use fill::Fill;

/// Valid indices of one axis, counted on the axis.
pub(crate) type Windows = SmallVec<[(i64, i64); INLINE]>;

/// A tensor as a window onto memory; see the module's own description.
///
/// ```
/// use tile_layout::{Movement, View};
/// let image = View::row_major(&[4, 6])?;
/// let window = image.shrink(&[None, Some((1, 5))])?.transpose(0, 1)?.pad(&[Some((1, 1)), None])?;
/// assert_eq!(window.shape(), [6, 4]);
/// assert_eq!(window.to_string(), "(4,4):(1,6) + 1 within (6,4) at (1,0)");
/// assert_eq!((window.get(&[0, 0])?, window.get(&[1, 2])?), (None, Some(13)));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct View {
    /// Behind a pointer, because views are moved and cloned more often than made.
    parts: Arc<Parts>,
}

/// What a view is made of.
#[derive(Clone, PartialEq, Eq)]
struct Parts {
    extents: Ints,
    windows: Windows,
    layout: Layout,
    offset: i64,
    fill: Fill,
    swizzle: Swizzle,
    /// Nothing where elements are scalars.
    element: Option<Box<Layout>>,
}

impl View {
    fn of(parts: Parts) -> View {
        View { parts: Arc::new(parts) }
    }

    /// A view of the elements `offset + Σ index·stride`.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where lengths and strides differ in number; otherwise as [`Layout::new`].
    ///
    /// ```
    /// use tile_layout::View;
    /// assert_eq!(View::strided(&[2, 3], &[1, -2], 4)?.offsets().flatten().collect::<Vec<_>>(), [4, 2, 0, 5, 3, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn strided(shape: &[i64], strides: &[i64], offset: i64) -> Result<View> {
        if shape.len() != strides.len() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("{} extents and {} strides", shape.len(), strides.len()),
            ));
        }
        View::from_layout(&Layout::new(IntTuple::flat(shape), IntTuple::flat(strides))?, offset)
    }

    /// A dense view, the last axis contiguous.
    ///
    /// # Errors
    /// As [`Layout::new`].
    ///
    /// ```
    /// assert_eq!(tile_layout::View::row_major(&[2, 3])?.to_string(), "(2,3):(3,1) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn row_major(shape: &[i64]) -> Result<View> {
        View::from_layout(&Layout::row_major(IntTuple::flat(shape))?, 0)
    }

    /// A dense view, the first axis contiguous.
    ///
    /// # Errors
    /// As [`Layout::new`].
    ///
    /// ```
    /// assert_eq!(tile_layout::View::column_major(&[2, 3])?.to_string(), "(2,3):(1,2) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn column_major(shape: &[i64]) -> Result<View> {
        View::from_layout(&Layout::column_major(IntTuple::flat(shape))?, 0)
    }

    /// A view with one axis per mode of a layout; a leaf is one axis.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] where an offset exceeds 2^62.
    ///
    /// ```
    /// use tile_layout::View;
    /// let view = View::from_layout(&"((2,2),3):((1,6),2)".parse()?, 10)?;
    /// assert_eq!((view.shape(), view.get(&[3, 1])?), (&[4, 3][..], Some(19)));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn from_layout(layout: &Layout, offset: i64) -> Result<View> {
        let extents: Ints = layout.part().children().map(|mode| mode.size()).collect();
        let windows = extents.iter().map(|&extent| (0, extent)).collect();
        let modes = layout.part().children().map(|mode| mode.modes);
        View::assemble(extents, windows, modes, offset, Fill::ZERO)
    }

    /// A view of nothing but its fill.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidExtent`] for a negative extent, [`ErrorKind::Overflow`] where the size does not fit.
    ///
    /// ```
    /// use tile_layout::{Fill, View};
    /// let ones = View::filled(&[2, 2], Fill::from(1))?;
    /// assert!(ones.offsets().all(|offset| offset.is_none()));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn filled(shape: &[i64], fill: Fill) -> Result<View> {
        check_extents(shape)?;
        let size = product(shape)?;
        // Rank 0 has no axis whose window could be empty; its layout is.
        let layout = match shape.len() {
            0 => Layout::leaf(0, 0)?,
            rank => Layout::concat(&alloc::vec![Layout::leaf(0, 0)?; rank])?,
        };
        Ok(View::of(Parts {
            extents: Ints::from_slice(shape),
            windows: shape.iter().map(|_| (0, 0)).collect(),
            layout,
            offset: 0,
            fill: if size == 0 { Fill::ZERO } else { fill },
            swizzle: Swizzle::IDENTITY,
            element: None,
        }))
    }

    /// A view from what it prints: the layout of the window, where that begins inside the shape, and the rest.
    pub(crate) fn placed(
        layout: &Layout,
        offset: i64,
        shape: &[i64],
        begin: &[i64],
        fill: Fill,
    ) -> Result<View> {
        check_extents(shape)?;
        let lengths: Ints = layout.part().children().map(|mode| mode.size()).collect();
        if layout.size() == 0 {
            return View::filled(shape, fill);
        }
        if lengths.len() != shape.len() || begin.len() != shape.len() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("window {layout} at {begin:?} in a shape of {} axes", shape.len()),
            ));
        }
        let outside = |axis: &usize| begin[*axis] < 0 || begin[*axis] > shape[*axis] - lengths[*axis];
        if let Some(axis) = (0..shape.len()).find(outside) {
            return Err(LayoutError::at(
                ErrorKind::OutOfBounds,
                &[axis],
                format!(
                    "window of {} from {} on axis {axis} leaves its extent {}",
                    lengths[axis], begin[axis], shape[axis]
                ),
            ));
        }
        let windows = begin.iter().zip(&lengths).map(|(&low, &length)| (low, low + length)).collect();
        let modes = layout.part().children().map(|mode| mode.modes);
        View::assemble(Ints::from_slice(shape), windows, modes, offset, fill)
    }

    /// Put a view together of the modes of each axis and bring it into its one normal form: modes coalesced, empty
    /// windows empty on every axis, no fill where nothing is filled.
    pub(crate) fn assemble<'m>(
        extents: Ints,
        windows: Windows,
        modes: impl IntoIterator<Item = &'m [Mode]>,
        offset: i64,
        fill: Fill,
    ) -> Result<View> {
        product(&extents)?;
        if windows.iter().any(|(low, high)| low >= high) {
            return View::filled(&extents, fill);
        }
        let mut builder = Builder::new();
        builder.open(extents.len());
        modes.into_iter().for_each(|modes| crate::algebra::push_coalesced(&mut builder, modes));
        let layout = builder.finish()?;
        if !is_within_limits(&layout, offset) {
            return Err(LayoutError::new(
                ErrorKind::Overflow,
                format!("{layout} from offset {offset} exceeds 2^62"),
            ));
        }
        let full = windows.iter().zip(&extents).all(|(&window, &extent)| window == (0, extent));
        let fill = if full { Fill::ZERO } else { fill };
        let swizzle = Swizzle::IDENTITY;
        Ok(View::of(Parts { extents, windows, layout, offset, fill, swizzle, element: None }))
    }

    /// The same view with every offset greater by a number; `None` where one exceeds the limits.
    pub(crate) fn shifted(&self, by: i64) -> Option<View> {
        let mut view = self.clone();
        if by != 0 {
            let offset = self.parts.offset.checked_add(by)?;
            Arc::make_mut(&mut view.parts).offset = offset;
        }
        is_within_limits(&view.parts.layout, view.parts.offset).then_some(view)
    }

    /// The extents.
    ///
    /// ```
    /// assert_eq!(tile_layout::View::row_major(&[2, 3])?.shape(), [2, 3]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn shape(&self) -> &[i64] {
        &self.parts.extents
    }

    /// Number of axes.
    ///
    /// ```
    /// assert_eq!(tile_layout::View::row_major(&[2, 3])?.rank(), 2);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.parts.extents.len()
    }

    /// Number of indices, filled ones among them.
    ///
    /// ```
    /// assert_eq!(tile_layout::View::row_major(&[2, 3])?.size(), 6);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn size(&self) -> i64 {
        product(&self.parts.extents).unwrap_or(i64::MAX)
    }

    /// The valid indices of an axis; `None` where there is no such axis.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let padded = View::row_major(&[4])?.pad(&[Some((1, 2))])?;
    /// assert_eq!(padded.window(0), Some(1..5));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn window(&self, axis: usize) -> Option<Range<i64>> {
        self.parts.windows.get(axis).map(|&(low, high)| low..high)
    }

    /// The offsets of the window, from its first index on: one mode per axis.
    ///
    /// ```
    /// assert_eq!(tile_layout::View::row_major(&[2, 3])?.layout().to_string(), "(2,3):(3,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.parts.layout
    }

    /// The offset of the window's first index, in elements.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 3])?.flip(&[1])?.offset(), 2);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offset(&self) -> i64 {
        self.parts.offset
    }

    /// One stride per axis, 0 for an axis with at most one valid index; `None` where an axis has several modes.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 3])?.strides(), Some(vec![3, 1]));
    /// assert_eq!(View::row_major(&[2, 3])?.transpose(0, 1)?.flatten(0, 1)?.strides(), None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn strides(&self) -> Option<Vec<i64>> {
        let single = |mode: crate::layout::Part<'_>| mode.is_leaf().then(|| mode.modes[0].stride);
        self.parts.layout.part().children().take(self.rank()).map(single).collect()
    }

    /// Whether the elements lie one after the other in row-major order, all of them in memory.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[4, 6])?;
    /// assert!(view.shrink(&[Some((1, 3)), None])?.is_contiguous());
    /// assert!(!view.shrink(&[None, Some((1, 3))])?.is_contiguous() && !view.t()?.is_contiguous());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_contiguous(&self) -> bool {
        if self.size() == 0 {
            return true;
        }
        let axes: SmallVec<[&[Mode]; INLINE]> = self.axes().collect();
        let mut modes = axes.iter().rev().flat_map(|modes| modes.iter()).filter(|mode| mode.extent > 1);
        let mut next = 1i64;
        let is_next = |mode: &Mode| {
            let is_next = mode.stride == next;
            next = next.saturating_mul(mode.extent);
            is_next
        };
        self.is_plain() && !self.is_masked() && modes.all(is_next)
    }

    /// What is read outside the window; [`Fill::ZERO`] where nothing is.
    ///
    /// ```
    /// use tile_layout::{Fill, Movement, View};
    /// let padded = View::row_major(&[4])?.pad_with(&[Some((1, 2))], Fill::from(7))?;
    /// assert_eq!(padded.fill(), Fill::from(7));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn fill(&self) -> Fill {
        self.parts.fill
    }

    /// Whether some indices are filled.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[4])?;
    /// assert!(!view.is_masked() && view.pad(&[Some((1, 0))])?.is_masked());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_masked(&self) -> bool {
        let cut = |(&window, &extent): (&(i64, i64), &i64)| window != (0, extent);
        self.size() > 0 && (self.is_nothing() || self.parts.windows.iter().zip(&self.parts.extents).any(cut))
    }

    /// The swizzle that offsets pass through last.
    ///
    /// ```
    /// use tile_layout::{Swizzle, View};
    /// let view = View::row_major(&[8, 8])?.with_swizzle(Swizzle::new(3, 0, 3)?)?;
    /// assert_eq!(view.swizzle().bits(), 3);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn swizzle(&self) -> Swizzle {
        self.parts.swizzle
    }

    /// The same view of memory whose offsets are permuted: `memory[swizzle(offset)]`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the view is swizzled already, [`ErrorKind::OutOfBounds`] where an offset
    /// is negative.
    ///
    /// ```
    /// use tile_layout::{Swizzle, View};
    /// let view = View::row_major(&[8, 8])?.with_swizzle(Swizzle::new(3, 0, 3)?)?;
    /// assert_eq!(view.get(&[1, 0])?, Some(9));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn with_swizzle(mut self, swizzle: Swizzle) -> Result<View> {
        if self.parts.swizzle != Swizzle::IDENTITY {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("{self} is swizzled already, by {}", self.parts.swizzle),
            ));
        }
        crate::SwizzledLayout::new(swizzle, self.parts.offset, self.parts.layout.clone())?;
        Arc::make_mut(&mut self.parts).swizzle = swizzle;
        Ok(self)
    }

    /// The scalars of one element, relative to its offset: `1:0` unless the view is vectorised.
    ///
    /// ```
    /// use tile_layout::View;
    /// let vectors = View::row_major(&[4, 8])?.vectorize(&[1, 4])?;
    /// assert_eq!(vectors.element().size(), 4);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn element(&self) -> Layout {
        self.parts.element.as_ref().map_or_else(Layout::unit, |element| (**element).clone())
    }

    /// The offset at an index; `None` where it is filled.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where the number of indices is wrong, [`ErrorKind::OutOfBounds`] where one lies outside
    /// the shape.
    ///
    /// ```
    /// let view = tile_layout::View::row_major(&[2, 3])?;
    /// assert_eq!(view.get(&[1, 2])?, Some(5));
    /// assert!(view.get(&[2, 0]).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn get(&self, index: &[i64]) -> Result<Option<i64>> {
        check_index(&self.parts.extents, index)?;
        Ok(self.offset_at(index))
    }

    /// The offset at an index inside the shape.
    pub(crate) fn offset_at(&self, index: &[i64]) -> Option<i64> {
        self.linear_offset_at(index).map(|offset| self.parts.swizzle.apply(offset))
    }

    /// As [`View::offset_at`], before the swizzle.
    pub(crate) fn linear_offset_at(&self, index: &[i64]) -> Option<i64> {
        let mut offset = self.parts.offset;
        let axes = self.parts.layout.part().children().zip(index).zip(&self.parts.windows);
        for ((mode, &index), &(low, high)) in axes {
            if index < low || index >= high {
                return None;
            }
            offset += crate::evaluate::at_index(mode, index - low);
        }
        (!self.is_nothing()).then_some(offset)
    }

    /// Offsets in row-major order, `None` where filled.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let padded = View::row_major(&[3])?.pad(&[Some((1, 0))])?;
    /// assert_eq!(padded.offsets().collect::<Vec<_>>(), [None, Some(0), Some(1), Some(2)]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offsets(&self) -> impl Iterator<Item = Option<i64>> {
        (0..self.size()).map(|position| self.offset_at(&unravel(&self.parts.extents, position)))
    }

    /// Whether every index is filled.
    pub(crate) fn is_nothing(&self) -> bool {
        self.parts.layout.size() == 0
    }

    pub(crate) fn windows(&self) -> &[(i64, i64)] {
        &self.parts.windows
    }

    /// The modes of each axis.
    pub(crate) fn axes(&self) -> impl Iterator<Item = &[Mode]> {
        self.parts.layout.part().children().take(self.rank()).map(|mode| mode.modes)
    }

    /// Whether offsets are elements as they lie: neither swizzled nor vectors.
    pub(crate) fn is_plain(&self) -> bool {
        self.parts.swizzle == Swizzle::IDENTITY && self.parts.element.is_none()
    }

    /// As [`View::with_memory_of`], for a view that may reach where the other one doesn't.
    pub(crate) fn on_memory_of(self, other: &View) -> Result<View> {
        let view = match &other.parts.element {
            Some(element) => self.of_elements((**element).clone())?,
            None => self,
        };
        match other.parts.swizzle {
            Swizzle::IDENTITY => Ok(view),
            swizzle => view.with_swizzle(swizzle),
        }
    }

    /// Take swizzle and element layout over from the view whose offsets this one has some of.
    pub(crate) fn with_memory_of(mut self, other: &View) -> View {
        if !(self.is_plain() && other.is_plain()) {
            let parts = Arc::make_mut(&mut self.parts);
            parts.swizzle = other.parts.swizzle;
            parts.element.clone_from(&other.parts.element);
        }
        self
    }

    /// The view with vectors in place of its elements, if none of their scalars leaves the limits.
    pub(crate) fn of_elements(self, element: Layout) -> Result<View> {
        let ends = [element.min_offset(), element.max_offset()];
        let within = |end: &i64| {
            self.parts.offset.checked_add(*end).is_some_and(|at| is_within_limits(&self.parts.layout, at))
        };
        if ends.iter().all(within) {
            return Ok(self.with_element(element));
        }
        Err(LayoutError::new(ErrorKind::Overflow, format!("elements {element} of {self} exceed 2^62")))
    }

    pub(crate) fn with_element(mut self, element: Layout) -> View {
        let element = (element != Layout::unit()).then(|| Box::new(element));
        Arc::make_mut(&mut self.parts).element = element;
        self
    }
}

/// Whether all offsets stay within 2^62.
fn is_within_limits(layout: &Layout, offset: i64) -> bool {
    let within = |end: i64| offset.checked_add(end).is_some_and(|at| (-LIMIT..=LIMIT).contains(&at));
    within(0) && within(layout.min_offset()) && within(layout.max_offset())
}

/// The index at a row-major position.
pub(crate) fn unravel(extents: &[i64], mut position: i64) -> Ints {
    let mut index: Ints = extents.iter().map(|_| 0).collect();
    for (place, &extent) in index.iter_mut().zip(extents).rev() {
        *place = position % extent;
        position /= extent;
    }
    index
}

/// Whether a tensor can have these extents.
fn check_extents(extents: &[i64]) -> Result<()> {
    match extents.iter().position(|&extent| extent < 0) {
        None => Ok(()),
        Some(axis) => Err(LayoutError::at(
            ErrorKind::InvalidExtent,
            &[axis],
            format!("extent {} of axis {axis} is negative", extents[axis]),
        )),
    }
}

/// Whether `index` names an element of a tensor of these extents.
pub(crate) fn check_index(extents: &[i64], index: &[i64]) -> Result<()> {
    if index.len() != extents.len() {
        return Err(LayoutError::new(
            ErrorKind::Rank,
            format!("{} indices for a tensor of {} axes", index.len(), extents.len()),
        ));
    }
    match index.iter().zip(extents).position(|(index, extent)| !(0..*extent).contains(index)) {
        None => Ok(()),
        Some(axis) => Err(LayoutError::at(
            ErrorKind::OutOfBounds,
            &[axis],
            format!("index {} on axis {axis} lies outside its extent {}", index[axis], extents[axis]),
        )),
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
