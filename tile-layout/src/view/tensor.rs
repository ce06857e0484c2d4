//! The operations of Mojo's LayoutTensor on views: tiles, parts, vectors, slices, reinterpretations.
//!
//! Where the shape does not divide, the last tile and the last part are masked: a tile always has its full shape,
//! and its window says what of it exists. A tile that lies wholly outside is empty, not an error (a partition
//! view, [`crate::PartitionView`], refuses it).

use super::View;
use crate::algebra::Tiler;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode};
use crate::movement::maps::{self, Run};
use crate::movement::{Index, Movement};
use crate::tuple::{IntTuple, Ints};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

impl View {
    /// The tile at `coordinate`, counted in tiles: `sizes[k]` elements from index `coordinate[k]·sizes[k]` on.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] unless there is one size and one coordinate per axis, [`ErrorKind::InvalidExtent`] for
    /// a size below 1, [`ErrorKind::OutOfBounds`] for a negative coordinate.
    ///
    /// ```
    /// use tile_layout::View;
    /// let matrix = View::row_major(&[4, 9])?;
    /// assert_eq!(matrix.tile(&[2, 4], &[1, 1])?.to_string(), "(2,4):(9,1) + 22");
    /// // The third tile of a row has one column; the rest of it is filled.
    /// assert_eq!(matrix.tile(&[2, 4], &[0, 2])?.to_string(), "(2,1):(9,0) + 8 within (2,4) at (0,0)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tile(&self, sizes: &[i64], coordinate: &[i64]) -> Result<View> {
        self.check_tile(sizes, coordinate)?;
        let start: Ints = sizes.iter().zip(coordinate).map(|(&size, &at)| at.saturating_mul(size)).collect();
        self.block(&start, sizes)
    }

    /// The tiles from `coordinate` on, one after the other along `axis`, up to the end of the tensor. A tile that no
    /// view holds is refused in its place, as [`View::tile`] does; those behind it follow.
    ///
    /// # Errors
    /// As [`View::tile`]; [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::View;
    /// let tiles = View::row_major(&[4, 9])?.tiled_iterator(&[2, 4], &[1, 0], 1)?;
    /// let offsets = tiles.map(|tile| Ok(tile?.offset())).collect::<tile_layout::Result<Vec<_>>>()?;
    /// assert_eq!(offsets, [18, 22, 26]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tiled_iterator(
        &self,
        sizes: &[i64],
        coordinate: &[i64],
        axis: i64,
    ) -> Result<impl Iterator<Item = Result<View>> + use<>> {
        self.check_tile(sizes, coordinate)?;
        let axis = crate::movement::axis(axis, self.rank())?;
        let count = match (self.shape().get(axis), sizes.get(axis)) {
            (Some(&extent), Some(&size)) => (extent.max(1) - 1) / size + i64::from(extent > 0),
            _ => 1,
        };
        let (view, sizes, coordinate) = (self.clone(), sizes.to_vec(), Ints::from_slice(coordinate));
        let first = coordinate.get(axis).copied().unwrap_or(0);
        Ok((first..count).map(move |at| {
            let mut coordinate = coordinate.clone();
            if let Some(own) = coordinate.get_mut(axis) {
                *own = at;
            }
            view.tile(&sizes, &coordinate)
        }))
    }

    fn check_tile(&self, sizes: &[i64], coordinate: &[i64]) -> Result<()> {
        if sizes.len() != self.rank() || coordinate.len() != self.rank() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!(
                    "tile {} at {} of a tensor of {} axes",
                    IntTuple::flat(sizes),
                    IntTuple::flat(coordinate),
                    self.rank()
                ),
            ));
        }
        if let Some(axis) = sizes.iter().position(|&size| size < 1) {
            return Err(LayoutError::at(
                ErrorKind::InvalidExtent,
                &[axis],
                format!("a tile has 1 element or more along axis {axis}, not {}", sizes[axis]),
            ));
        }
        match coordinate.iter().position(|&at| at < 0) {
            None => Ok(()),
            Some(axis) => Err(LayoutError::at(
                ErrorKind::OutOfBounds,
                &[axis],
                format!("tile {} along axis {axis} lies before the tensor", coordinate[axis]),
            )),
        }
    }

    /// `sizes` elements from an index on, masked where they leave the tensor.
    pub(crate) fn block(&self, start: &[i64], sizes: &[i64]) -> Result<View> {
        let run = |(&start, &extent): (&i64, &i64)| Run { start, extent, step: 1 };
        self.runs(&start.iter().zip(sizes).map(run).collect::<Vec<_>>())
    }

    /// One run of indices per axis, masked where it leaves the axis.
    pub(super) fn runs(&self, runs: &[Run]) -> Result<View> {
        self.through(&maps::runs(self.shape(), runs, self.fill())?)
    }

    /// `count` equal parts along `axis`.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`], [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::View;
    /// let parts = View::row_major(&[4, 6])?.split_even(3, 1)?;
    /// assert_eq!(parts.iter().map(View::offset).collect::<Vec<_>>(), [0, 2, 4]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn split_even(&self, count: i64, axis: i64) -> Result<Vec<View>> {
        let place = crate::movement::axis(axis, self.rank())?;
        let extent = self.shape().get(place).copied().unwrap_or(1);
        if count < 1 || extent % count != 0 {
            return Err(LayoutError::at(
                ErrorKind::NotDivisible,
                &[place],
                format!("axis {place} of extent {extent} does not split into {count} equal parts"),
            ));
        }
        crate::movement::check_parts(count)?;
        (0..count).map(|index| self.split_part(axis, 1, count, index)).collect()
    }

    /// Part `index` of `count` along `axis`, each but the last as long as `⌈extent / count⌉` rounded up to a
    /// multiple of `alignment`. The parts cover the axis: the last ones may be shorter or empty. (Mojo rounds
    /// down, and loses the rest.)
    ///
    /// # Errors
    /// [`ErrorKind::InvalidExtent`] for a count or an alignment below 1, [`ErrorKind::OutOfBounds`] unless
    /// `0 ≤ index < count`, [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::View;
    /// let rows = View::row_major(&[10, 4])?;
    /// let lengths = (0..4).map(|part| Ok(rows.split_part(0, 1, 4, part)?.shape()[0]));
    /// assert_eq!(lengths.collect::<tile_layout::Result<Vec<_>>>()?, [3, 3, 3, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn split_part(&self, axis: i64, alignment: i64, count: i64, index: i64) -> Result<View> {
        let place = crate::movement::axis(axis, self.rank())?;
        let extent = self.shape().get(place).copied().unwrap_or(1);
        if count < 1 || alignment < 1 {
            return Err(LayoutError::at(
                ErrorKind::InvalidExtent,
                &[place],
                format!("{count} parts aligned to {alignment}: both must be 1 or more"),
            ));
        }
        if !(0..count).contains(&index) {
            return Err(LayoutError::at(
                ErrorKind::OutOfBounds,
                &[place],
                format!("part {index} of {count} along axis {place}"),
            ));
        }
        let share = (extent.max(1) - 1) / count + 1;
        let part = ((share - 1) / alignment + 1).saturating_mul(alignment);
        let begin = index.saturating_mul(part).min(extent);
        let mut ranges = alloc::vec![None; self.rank()];
        if let Some(range) = ranges.get_mut(place) {
            *range = Some((begin, begin.saturating_add(part).min(extent)));
        }
        self.shrink(&ranges)
    }

    /// The same elements as small vectors of `sizes`: the shape counts vectors, the element layout the scalars
    /// of one.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`] where a size does not divide its extent, [`ErrorKind::Rank`],
    /// [`ErrorKind::Unsupported`] for a masked, swizzled or vectorised view.
    ///
    /// ```
    /// use tile_layout::View;
    /// let vectors = View::row_major(&[4, 8])?.vectorize(&[1, 4])?;
    /// assert_eq!(vectors.to_string(), "(4,2):(8,4) + 0 of (1,4):(0,1)");
    /// assert_eq!(vectors.vector(&[1, 1])?, Some(vec![12, 13, 14, 15]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn vectorize(&self, sizes: &[i64]) -> Result<View> {
        self.check_whole("vectorised")?;
        if sizes.len() != self.rank() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("vectors of {} on a tensor of {} axes", IntTuple::flat(sizes), self.rank()),
            ));
        }
        let indivisible = |(&size, &extent): (&i64, &i64)| size < 1 || extent % size != 0;
        if let Some(axis) = sizes.iter().zip(self.shape()).position(indivisible) {
            return Err(LayoutError::at(
                ErrorKind::NotDivisible,
                &[axis],
                format!(
                    "vectors of {} do not divide axis {axis} of extent {}",
                    sizes[axis],
                    self.shape()[axis]
                ),
            ));
        }
        let divided = self.whole_layout()?.zipped_divide(IntTuple::flat(sizes))?;
        let (Some(element), Some(outer)) = (divided.mode(0), divided.mode(1)) else {
            return Ok(self.clone());
        };
        Ok(View::from_layout(&outer, self.offset())?.with_element(element.coalesce_modes()))
    }

    /// The offsets of the scalars of the element at an index, first mode fastest; `None` where it is filled.
    ///
    /// # Errors
    /// As [`View::get`].
    ///
    /// ```
    /// let rows = tile_layout::View::row_major(&[2, 3])?;
    /// assert_eq!(rows.vector(&[1, 1])?, Some(vec![4]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn vector(&self, index: &[i64]) -> Result<Option<Vec<i64>>> {
        super::check_index(self.shape(), index)?;
        let base = self.linear_offset_at(index);
        Ok(base
            .map(|base| self.element().offsets().map(|offset| self.swizzle().apply(base + offset)).collect()))
    }

    /// Ranges of some axes, in the order given, at fixed indices of the others: `kept` has an axis and its range
    /// for each axis of the result, `fixed` an index for each other axis. Negative bounds count from the end.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where `kept` and `fixed` do not name each axis once, in order;
    /// [`ErrorKind::OutOfBounds`] for an index outside its axis; [`ErrorKind::InvalidRange`].
    ///
    /// ```
    /// use tile_layout::View;
    /// let batch = View::row_major(&[2, 4, 6])?;
    /// let window = batch.slice(&[(1, 1..3), (2, 2..-1)], &[1])?;
    /// assert_eq!(window.to_string(), "(2,3):(6,1) + 32");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn slice(&self, kept: &[(usize, Range<i64>)], fixed: &[i64]) -> Result<View> {
        let ascending = kept.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let named = kept.iter().all(|&(axis, _)| axis < self.rank());
        if !ascending || !named || kept.len() + fixed.len() != self.rank() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!(
                    "{} ranges and {} fixed indices do not name each of {} axes once, in order",
                    kept.len(),
                    fixed.len(),
                    self.rank()
                ),
            ));
        }
        let mut fixed = fixed.iter();
        let mut indices = Vec::new();
        for axis in 0..self.rank() {
            indices.push(match kept.iter().find(|(own, _)| *own == axis) {
                Some((_, range)) => Index::from(normal_range(axis, range, self.shape()[axis])?),
                None => Index::At(fixed.next().copied().unwrap_or(0)),
            });
        }
        self.index(&indices)
    }

    /// Another layout on the same memory, from the same offset. Unlike [`Movement::reshape`] this reads memory,
    /// not the elements in their order: on a transposed view the two differ. (It is what LayoutTensor calls
    /// `reshape`.)
    ///
    /// # Errors
    /// [`ErrorKind::SizeMismatch`], [`ErrorKind::Unsupported`] for a masked view, [`ErrorKind::OutOfBounds`] where an
    /// offset of a swizzled view would be negative, [`ErrorKind::Overflow`] where one exceeds 2^62.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let columns = View::row_major(&[2, 3])?.t()?;
    /// assert_eq!(columns.reinterpret(&"6:1".parse()?)?.offsets().flatten().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    /// assert_eq!(columns.reshape([6])?.offsets().flatten().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn reinterpret(&self, layout: &Layout) -> Result<View> {
        self.check_unmasked("reinterpreted")?;
        if layout.size() != self.size() {
            return Err(LayoutError::new(
                ErrorKind::SizeMismatch,
                format!("{layout} has {} elements, {self} has {}", layout.size(), self.size()),
            ));
        }
        View::from_layout(layout, self.offset())?.on_memory_of(self)
    }

    /// The view whose layout is this one's after `right`: `layout ∘ right`, which may be smaller. A view without elements
    /// keeps no strides, and is taken for one of rows.
    ///
    /// # Errors
    /// As [`Layout::compose`]; [`ErrorKind::Unsupported`] for a masked view.
    ///
    /// ```
    /// use tile_layout::View;
    /// let rows = View::row_major(&[4, 6])?;
    /// assert_eq!(rows.composition([2, 3])?.to_string(), "(2,3):(6,1) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn composition(&self, right: impl Into<Tiler>) -> Result<View> {
        self.check_unmasked("composed")?;
        Ok(View::from_layout(&self.whole_layout()?.compose(right)?, self.offset())?.with_memory_of(self))
    }

    /// The view with its layout coalesced, first mode fastest: fewer axes, the same offsets in that order. A
    /// row-major view stays as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a masked view.
    ///
    /// ```
    /// use tile_layout::View;
    /// assert_eq!(View::column_major(&[4, 6])?.coalesce()?.to_string(), "(24):(1) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce(&self) -> Result<View> {
        self.check_unmasked("coalesced")?;
        Ok(View::from_layout(&self.layout().coalesce(), self.offset())?.with_memory_of(self))
    }

    /// How many elements this view begins after another one of the same memory; negative where it begins before.
    ///
    /// ```
    /// use tile_layout::View;
    /// let matrix = View::row_major(&[4, 6])?;
    /// assert_eq!(matrix.tile(&[2, 2], &[1, 1])?.distance(&matrix), 14);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn distance(&self, other: &View) -> i64 {
        // Both lie in one memory, whose offsets are not negative: the difference fits.
        self.offset().saturating_sub(other.offset())
    }

    /// The same memory with elements of `new_bits` instead of `old_bits`: a bitcast that recasts the layout. A view without
    /// elements keeps no strides, and is taken for one of rows. The parts of an element lie along the axis of stride 1; where
    /// there is none, along the last axis of one element, which steps nowhere else.
    ///
    /// # Errors
    /// As [`Layout::recast`]; [`ErrorKind::NotDivisible`] where the offset is not a whole number of new elements;
    /// [`ErrorKind::Unsupported`] for a masked or vectorised view.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let halves = View::row_major(&[4, 8])?.shrink(&[None, Some((2, 6))])?;
    /// assert_eq!(halves.recast(16, 32)?.to_string(), "(4,2):(4,1) + 1");
    /// let column = View::row_major(&[4, 8])?.shrink(&[None, Some((2, 3))])?;
    /// assert_eq!(column.recast(16, 8)?.to_string(), "(4,2):(16,1) + 4");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn recast(&self, old_bits: i64, new_bits: i64) -> Result<View> {
        self.check_unmasked("recast")?;
        if self.element() != Layout::unit() {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("{self} is vectorised and cannot be recast; recast first"),
            ));
        }
        let layout = self.layout_for_parts()?.recast(old_bits, new_bits)?;
        let bits = i128::from(self.offset()) * i128::from(old_bits);
        let offset = i64::try_from(bits / i128::from(new_bits)).ok();
        let Some(offset) = offset.filter(|_| bits % i128::from(new_bits) == 0) else {
            return Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!("offset {} of {old_bits} bits is no whole number of {new_bits} bits", self.offset()),
            ));
        };
        let view = View::from_layout(&layout, offset)?;
        if self.swizzle() == crate::Swizzle::IDENTITY {
            return Ok(view);
        }
        view.with_swizzle(self.swizzle().recast(old_bits, new_bits)?)
    }

    /// The layout of all indices of a view that isn't masked. One without elements keeps no strides: its layout is that of
    /// rows.
    fn whole_layout(&self) -> Result<Layout> {
        if self.size() > 0 {
            return Ok(self.layout().clone());
        }
        let mut strides: Ints = self.shape().iter().map(|_| 0).collect();
        let mut stride = 1i64;
        for (own, extent) in strides.iter_mut().zip(self.shape()).rev() {
            *own = stride;
            stride = stride.saturating_mul(*extent);
        }
        Layout::new(IntTuple::flat(self.shape()), IntTuple::flat(&strides))
    }

    /// As [`View::whole_layout`], in which parts of elements have a place: an axis of one element keeps no stride, and any
    /// will do.
    fn layout_for_parts(&self) -> Result<Layout> {
        let whole = self.whole_layout()?;
        let has_place = whole.leaves().iter().any(|mode| mode.stride == 1);
        let Some(axis) = self.shape().iter().rposition(|&extent| extent == 1).filter(|_| !has_place) else {
            return Ok(whole);
        };
        let mut builder = Builder::new();
        builder.open(self.rank());
        for (place, mode) in whole.part().children().enumerate() {
            if place == axis { builder.push_leaf(Mode::new(1, 1)) } else { builder.push(mode) }
        }
        builder.finish()
    }

    fn check_unmasked(&self, what: &str) -> Result<()> {
        if self.is_masked() {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("{self} is masked and cannot be {what}; shrink it to its window first"),
            ));
        }
        Ok(())
    }

    fn check_whole(&self, what: &str) -> Result<()> {
        self.check_unmasked(what)?;
        if self.is_plain() {
            return Ok(());
        }
        Err(LayoutError::new(ErrorKind::Unsupported, format!("{self} is no plain view and cannot be {what}")))
    }
}

/// A range with negative bounds counted from the end.
fn normal_range(axis: usize, range: &Range<i64>, extent: i64) -> Result<Range<i64>> {
    let counted = |bound: i64| if bound < 0 { bound.saturating_add(extent) } else { bound };
    let (begin, end) = (counted(range.start), counted(range.end));
    if begin < 0 || begin > end || end > extent {
        return Err(LayoutError::at(
            ErrorKind::InvalidRange,
            &[axis],
            format!("range {}..{} of axis {axis} does not lie in 0..{extent}", range.start, range.end),
        ));
    }
    Ok(begin..end)
}
