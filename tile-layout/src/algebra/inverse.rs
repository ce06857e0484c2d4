//! Inverses, what they tell about two layouts, and the nullspace.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode, Modes};
use crate::tuple::INLINE;
use alloc::format;
use smallvec::{SmallVec, smallvec};

impl Layout {
    /// The layout `R` with `self(R(i)) = i` of the offsets from 0 up that modes reach without a gap, each of which
    /// begins where those before it end. Where no stride is negative and each element has an offset of its own, there is
    /// no longer one.
    ///
    /// Modes of stride 0 are passed over. A layout that skips offset 1 has the right inverse `1:0`, one without
    /// elements `0:0`.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,4):(4,1)".parse()?;
    /// assert_eq!(rows.right_inverse().to_string(), "(4,8):(8,1)");
    /// assert_eq!("(4,2):(2,16)".parse::<Layout>()?.right_inverse().to_string(), "1:0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn right_inverse(&self) -> Layout {
        let places = self.leaves_with_index_strides();
        let mut inverse = Modes::new();
        if self.size() == 0 {
            // Not even offset 0 is reached.
            inverse.push(Mode::new(0, 0));
        }
        let mut reached = 1i64;
        while let Some(&(mode, index_stride)) =
            places.iter().find(|(mode, _)| mode.extent > 1 && mode.stride == reached)
        {
            inverse.push(Mode::new(mode.extent, index_stride));
            match reached.checked_mul(mode.extent) {
                Some(next) => reached = next,
                None => break,
            }
        }
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&inverse));
        builder.finish().unwrap_or_else(|_| Layout::unit())
    }

    /// A layout `R` with `R(self(i)) = i`. Offsets that `self` skips are sent somewhere.
    ///
    /// # Errors
    /// [`ErrorKind::NotInjective`] where two elements share an offset or interleave so that no layout tells
    /// them apart; [`ErrorKind::NegativeStride`]; [`ErrorKind::Overflow`] where the inverse would have more than 2^62
    /// elements.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let gaps: Layout = "(4,2):(2,16)".parse()?;
    /// let inverse = gaps.left_inverse()?;
    /// assert_eq!(inverse.to_string(), "(2,8,2):(0,1,4)");
    /// assert!(gaps.offsets().enumerate().all(|(i, offset)| inverse.get(offset) == Some(i as i64)));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn left_inverse(&self) -> Result<Layout> {
        let not_injective = |leaf: usize, what: &str| {
            Err(LayoutError::at(
                ErrorKind::NotInjective,
                &[leaf],
                format!("{self} has no left inverse: stride of mode {leaf} {what}"),
            ))
        };
        if let Some(leaf) = self.leaves().iter().position(|mode| mode.extent > 1 && mode.stride == 0) {
            return not_injective(leaf, "is 0");
        }
        let places = self.leaves_with_index_strides();
        let mut inverse = Modes::new();
        let (mut below, mut reached, mut index_stride) = (1i64, 1i64, 0i64);
        for (leaf, mode) in self.moving_modes_by_stride()? {
            if mode.stride % below != 0 || mode.stride < reached {
                return not_injective(leaf, "is not a multiple of what the modes below it span");
            }
            inverse.push(Mode::new(mode.stride / below, index_stride));
            below = mode.stride;
            reached = mode.stride.checked_mul(mode.extent).ok_or_else(|| {
                let message = format!("the left inverse of {self} would have more than 2^62 elements");
                LayoutError::new(ErrorKind::Overflow, message)
            })?;
            index_stride = places[leaf].1;
        }
        let last = reached / below;
        inverse.push(Mode::new(last, index_stride));
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&inverse));
        builder.finish()
    }

    /// The coordinates that are all sent to offset 0 by strides of 0: `self(R(i)) = 0`, as linear indices.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let broadcast: Layout = "(4,3,2):(1,0,4)".parse()?;
    /// assert_eq!(broadcast.nullspace().to_string(), "3:4");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn nullspace(&self) -> Layout {
        let places =
            if self.size() == 0 { smallvec![(Mode::new(0, 0), 0)] } else { self.leaves_with_index_strides() };
        let still = places.iter().filter(|(mode, _)| mode.stride == 0 && mode.extent != 1);
        let modes: Modes = still.map(|(mode, index_stride)| Mode::new(mode.extent, *index_stride)).collect();
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&modes));
        builder.finish().unwrap_or_else(|_| Layout::unit())
    }

    /// The most elements that lie next to each other in memory in both layouts and are the same elements: the
    /// widest vector that copies from one to the other. Alignment of the memory and the width of an instruction
    /// limit it further.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,4):(4,1)".parse()?;
    /// let padded: Layout = "(8,4):(6,1)".parse()?;
    /// assert_eq!(rows.max_common_vector(&padded), 4);
    /// assert_eq!(rows.max_common_vector(&"(8,4):(1,8)".parse()?), 1);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_common_vector(&self, other: &Layout) -> i64 {
        let common = match self.compose(other.right_inverse()) {
            Ok(common) => common.coalesce(),
            Err(_) => return self.common_vector_stepwise(other),
        };
        match common.leaves() {
            [first, ..] if first.stride == 1 => first.extent,
            _ => 1,
        }
    }

    /// As [`Layout::max_common_vector`] where the composition is no layout: its first run is still even.
    fn common_vector_stepwise(&self, other: &Layout) -> i64 {
        let inverse = other.right_inverse();
        let known = inverse.leaves().first().map_or(0, |first| self.unit_steps(first));
        let agrees = |&i: &i64| inverse.get(i).and_then(|index| self.get(index)) == Some(i);
        let further = (known..inverse.size()).take_while(agrees).count() as i64;
        (known + further).max(1)
    }

    /// How many of a mode's indices are known to be 1 apart in memory, from 0 on, without looking at each: those by which no
    /// coordinate goes over into the next.
    fn unit_steps(&self, indices: &Mode) -> i64 {
        let (mut rest, mut step, mut count) = (indices.stride, 0i64, indices.extent);
        for mode in self.coalesce().leaves().iter().filter(|mode| mode.extent > 0) {
            let digit = rest % mode.extent;
            rest /= mode.extent;
            if digit > 0 {
                step = step.saturating_add(digit.saturating_mul(mode.stride));
                count = count.min((mode.extent - 1) / digit + 1);
            }
        }
        if rest == 0 && step == 1 { count } else { 0 }
    }

    /// The leaves, each with the stride of its coordinate in the linear index.
    fn leaves_with_index_strides(&self) -> SmallVec<[(Mode, i64); INLINE]> {
        let mut index_stride = 1i64;
        let place = |&mode: &Mode| {
            let own = index_stride;
            index_stride = index_stride.saturating_mul(mode.extent);
            (mode, own)
        };
        self.leaves().iter().map(place).collect()
    }
}
